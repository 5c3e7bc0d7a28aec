package picture

import (
	"cmp"
	"fmt"
	"slices"
)

// Layered places boxes that stand in two layers, origins on the left and
// mirrors on the right, so that few arrows cross and they are short.
type Layered func(Layers) (Places, error)

// Layers are boxes to be placed, and the arrows between them.
type Layers struct {
	Left, Right []Size
	// Arrows go from a box on the left to one on the right, each once.
	Arrows [][2]int
	// Gap is how much is between boxes of a layer at the least.
	Gap int
}

// Size is that of a box, in pixels.
type Size struct{ Width, Height float64 }

// Places are the tops of the boxes of both layers, in the order of the boxes.
type Places struct{ Left, Right []float64 }

// side is a column of boxes with their places, from the top down.
type side struct {
	boxes []box
	x, w  float64
	y     []float64 // of each box
}

// sideOf returns a side whose boxes have no places yet.
func sideOf(boxes []box) side {
	s := side{boxes: boxes, y: make([]float64, len(boxes))}
	for _, box := range boxes {
		s.w = max(s.w, box.width())
	}
	return s
}

func (s side) bottom() float64 {
	bottom := 0.0
	for i, box := range s.boxes {
		bottom = max(bottom, s.y[i]+box.height())
	}
	return bottom
}

// layOut returns the two sides with their boxes placed, and puts the lines of
// each box into the order of where their arrows come from.
func (v *view) layOut(layered Layered) (left, right side, err error) {
	left, right = sideOf(v.left), sideOf(v.right)
	layers := Layers{Left: left.sizes(), Right: right.sizes(), Gap: boxGap}
	for i, box := range v.right {
		for _, from := range box.origins() {
			layers.Arrows = append(layers.Arrows, [2]int{from, i})
		}
	}
	if len(layers.Arrows) == 0 {
		return left, right, nil
	}
	places, err := layered(layers)
	if err != nil {
		return left, right, fmt.Errorf("lay out the picture: %w", err)
	}
	left.place(places.Left)
	right.place(places.Right)
	for _, box := range right.boxes {
		slices.SortStableFunc(box.lines, func(a, b line) int { return cmp.Compare(left.y[a.from], left.y[b.from]) })
	}
	return left, right, nil
}

func (s side) sizes() []Size {
	all := make([]Size, len(s.boxes))
	for i, box := range s.boxes {
		all[i] = Size{Width: s.w, Height: box.height()}
	}
	return all
}

// origins are the boxes that a box has arrows from, each once.
func (b box) origins() []int {
	var from []int
	for _, line := range b.lines {
		if !slices.Contains(from, line.from) {
			from = append(from, line.from)
		}
	}
	return from
}

// place takes the places of boxes from a layout. Where they would touch, for all
// that a layout may do, the lower one gives way.
func (s *side) place(tops []float64) {
	order := make([]int, len(s.boxes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(tops[a], tops[b]) })
	free := 0.0
	for _, i := range order {
		s.y[i] = max(free, tops[i])
		free = s.y[i] + s.boxes[i].height() + boxGap
	}
}
