package picture

import (
	"cmp"
	"slices"
)

// The graph has two sides and arrows from the one to the other only, so that
// ordering one side by where its arrows come from is all that a layout needs.

// arrange orders the boxes on the right by where their arrows come from, so
// that few arrows cross.
func (v *view) arrange() {
	sum, count := make([]float64, len(v.right)), make([]float64, len(v.right))
	for _, arrow := range v.arrows {
		sum[arrow.to.box] += float64(arrow.from.box) + float64(arrow.from.line)/float64(len(v.left[arrow.from.box].lines))
		count[arrow.to.box]++
	}
	order := make([]int, len(v.right))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sum[a]/count[a], sum[b]/count[b]) })
	boxes, at := make([]box, len(v.right)), make([]int, len(v.right))
	for to, from := range order {
		boxes[to], at[from] = v.right[from], to
	}
	v.right = boxes
	for i := range v.arrows {
		v.arrows[i].to.box = at[v.arrows[i].to.box]
	}
}

func sideOf(boxes []box) side {
	s := side{boxes: boxes, y: make([]float64, len(boxes))}
	for _, box := range boxes {
		s.w = max(s.w, box.width())
	}
	s.stackAt(make([]float64, len(boxes)))
	return s
}

// stackAt puts boxes below each other, each as near to the wanted height as its
// upper neighbour lets it.
func (s *side) stackAt(wanted []float64) {
	y := 0.0
	for i, box := range s.boxes {
		s.y[i] = max(y, wanted[i])
		y = s.y[i] + box.height() + boxGap
	}
}

func (s *side) bottom() float64 {
	last := len(s.boxes) - 1
	if last < 0 {
		return 0
	}
	return s.y[last] + s.boxes[last].height()
}

// stack moves the boxes of the shorter side to the middle of where their arrows
// end.
func (v *view) stack(left, right *side) {
	moved, fixed := left, right
	toRight := left.bottom() <= right.bottom()
	if !toRight {
		moved, fixed = right, left
	}
	sum, count := make([]float64, len(moved.boxes)), make([]float64, len(moved.boxes))
	for _, arrow := range v.arrows {
		mine, other := arrow.from, arrow.to
		if !toRight {
			mine, other = other, mine
		}
		sum[mine.box] += fixed.y[other.box] + fixed.boxes[other.box].lineY(other.line) - moved.boxes[mine.box].height()/2
		count[mine.box]++
	}
	for i := range sum {
		sum[i] /= max(count[i], 1)
	}
	// Boxes keep their order, so a box that is pushed down pushes those below;
	// from below, all are pushed up again into the other side's height.
	moved.stackAt(sum)
	limit := fixed.bottom() + boxGap
	for i := len(moved.boxes) - 1; i >= 0; i-- {
		moved.y[i] = max(0, min(moved.y[i], limit-boxGap-moved.boxes[i].height()))
		limit = moved.y[i]
	}
}
