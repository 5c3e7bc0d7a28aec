package layered_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/mooring-k8s/mooring/internal/layered"
	"github.com/mooring-k8s/mooring/internal/picture"
)

// layers are n boxes on each side, of different heights, each with an arrow or
// two.
func layers(n int) picture.Layers {
	l := picture.Layers{Gap: 14}
	for i := range n {
		l.Left = append(l.Left, picture.Size{Width: 200, Height: 40})
		l.Right = append(l.Right, picture.Size{Width: 300, Height: float64(40 + 20*(i%3))})
		l.Arrows = append(l.Arrows, [2]int{i, (i*5 + 3) % n})
		if i%4 == 1 {
			l.Arrows = append(l.Arrows, [2]int{i, i})
		}
	}
	return l
}

// crossings counts the pairs of arrows that cross, by the boxes' tops.
func crossings(l picture.Layers, p picture.Places) int {
	count := 0
	for i, a := range l.Arrows {
		for _, b := range l.Arrows[:i] {
			if (p.Left[a[0]]-p.Left[b[0]])*(p.Right[a[1]]-p.Right[b[1]]) < 0 {
				count++
			}
		}
	}
	return count
}

// No boxes touch, the same boxes are placed the same each time, and fewer arrows
// cross than in the order in which they came.
func TestBy(t *testing.T) {
	for _, n := range []int{1, 8} {
		l := layers(n)
		places, err := layered.By(t.Context())(l)
		if err != nil {
			t.Fatal(err)
		}
		touch(t, fmt.Sprintf("left of %d", n), l.Left, places.Left)
		touch(t, fmt.Sprintf("right of %d", n), l.Right, places.Right)
		again, err := layered.By(t.Context())(l)
		if err != nil || !slices.Equal(again.Left, places.Left) || !slices.Equal(again.Right, places.Right) {
			t.Errorf("%d boxes are placed anew: %v, and then %v: %v", n, places, again, err)
		}
		inOrder := picture.Places{}
		for i := range n {
			inOrder.Left, inOrder.Right = append(inOrder.Left, float64(i)), append(inOrder.Right, float64(i))
		}
		if before, after := crossings(l, inOrder), crossings(l, places); after > before || before > 10 && after > before*2/3 {
			t.Errorf("%d boxes: %d arrows cross, and %d in the order in which they came", n, after, before)
		}
	}
}

func touch(t *testing.T, side string, sizes []picture.Size, tops []float64) {
	t.Helper()
	for i, top := range tops {
		for j, other := range tops {
			if i != j && top <= other && top+sizes[i].Height > other {
				t.Errorf("%s: box %d at %v is %v high, and box %d is at %v", side, i, top, sizes[i].Height, j, other)
			}
		}
	}
}

// A picture that nobody waits for any more is not laid out.
func TestByGivesUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := layered.By(ctx)(layers(3)); err == nil {
		t.Error("it laid out all the same")
	}
}
