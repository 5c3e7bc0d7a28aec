package choice_test

import (
	"maps"
	"testing"

	"github.com/mooring-k8s/mooring/internal/choice"
)

func TestNoBytesAreTheBaseCase(t *testing.T) {
	s := choice.From(nil)
	s.Perhaps(func() { t.Error("something is changed") })
	if s.Int(9) != 0 || s.Yes() || s.Text("usual", "other") != "usual" || choice.Of(s, 3, 4) != 3 || len(s.Map(3, nil, nil)) != 0 {
		t.Error("no bytes choose something else than the first")
	}
	if s.Text() != "" {
		t.Error("a text from nothing")
	}
}

func TestBytesChoose(t *testing.T) {
	data := []byte{5, 255, 1, 2, 3, 'a', 'b', 'c', 1, 0, 0}
	s := choice.From(data)
	if got := s.Int(4); got != 1 {
		t.Errorf("5 of 4 choices is %d", got)
	}
	if !s.Yes() {
		t.Error("255 does not say yes")
	}
	if got := choice.Of(s, "x", "y"); got != "y" {
		t.Errorf("1 of x and y is %s", got)
	}
	if got := s.Text("one", "two"); got != "abc" { // 2 is past the usual ones, 3 the length
		t.Errorf("the raw text is %q", got)
	}
	if got := s.Map(3, []string{"k"}, []string{"v"}); !maps.Equal(got, map[string]string{"k": "v"}) {
		t.Errorf("the map is %v", got)
	}
	if got := choice.From([]byte{3, 1, 'x'}).Text("a", "b"); len(got) < 400 || got[:2] != "xx" {
		t.Errorf("the repeated text is %q", got)
	}
}
