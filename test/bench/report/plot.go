package report

import (
	"bytes"
	"fmt"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Plot is a drawing for the page.
type Plot struct {
	Title, File string
	SVG         []byte
}

// Plots draws what was measured at more than one size.
func (r *Run) Plots() ([]Plot, error) {
	var plots []Plot
	for _, shape := range []string{OneOrigin, ManyOrigin} {
		for _, p := range []struct {
			title, file, unit, phase string
			figure                   func(Trial) float64
		}{
			{"volumes per second, alone, " + shape, "rate-" + shape + ".svg", "volumes per second", Alone, rate},
			{"milliseconds per mirror, alone, " + shape, "cost-" + shape + ".svg", "ms per mirror", Alone, func(t Trial) float64 { return 1000 * over(t.VolumeSeconds, float64(t.N)) }},
			{"seconds until all are Bound, end to end, " + shape, "bound-" + shape + ".svg", "seconds", EndToEnd, bound},
		} {
			svg, err := r.draw(p.title, p.unit, p.figure, Case{Phase: p.phase, Shape: shape})
			if err != nil {
				return nil, fmt.Errorf("draw %s: %w", p.file, err)
			}
			if svg != nil {
				plots = append(plots, Plot{p.title, p.file, svg})
			}
		}
	}
	return plots, nil
}

// draw makes one plot of a figure over N, a line for each scenario with bars
// from the least to the most of its rounds; nil if there is nothing to draw.
func (r *Run) draw(title, unit string, figure func(Trial) float64, of Case) ([]byte, error) {
	drawing := plot.New()
	drawing.Title.Text, drawing.X.Label.Text, drawing.Y.Label.Text = title, "N", unit
	drawing.X.Min, drawing.Y.Min = 0, 0
	drawing.Legend.Top = true
	drawn := false
	for i, scenario := range []string{Floor, Ideal, Mooring, PeerUnlimited, Peer} {
		of.Scenario = scenario
		line := r.line(of, figure)
		if len(line.XYs) == 0 {
			continue
		}
		drawn = true
		path, points, err := plotter.NewLinePoints(line.XYs)
		if err != nil {
			return nil, err
		}
		bars, err := plotter.NewYErrorBars(line)
		if err != nil {
			return nil, err
		}
		path.Color, points.Color, bars.Color = plotutil.Color(i), plotutil.Color(i), plotutil.Color(i)
		points.Shape = plotutil.Shape(i)
		drawing.Add(path, points, bars)
		drawing.Legend.Add(scenario, path, points)
	}
	if !drawn {
		return nil, nil
	}
	drawing.Y.Max *= 1.25 // room for the legend
	canvas := vgsvg.New(16*vg.Centimeter, 9*vg.Centimeter)
	drawing.Draw(draw.New(canvas))
	var svg bytes.Buffer
	_, err := canvas.WriteTo(&svg)
	return svg.Bytes(), err
}

// line has a point for each N, and the errors of its rounds.
type line struct {
	plotter.XYs
	plotter.YErrors
}

func (r *Run) line(of Case, figure func(Trial) float64) line {
	var sizes []int
	for _, t := range r.Trials {
		if t.Phase == of.Phase && t.Shape == of.Shape && t.Scenario == of.Scenario && !slices.Contains(sizes, t.N) {
			sizes = append(sizes, t.N)
		}
	}
	slices.Sort(sizes)
	var points line
	for _, n := range sizes {
		of.N = n
		s := r.Spread(of, figure)
		points.XYs = append(points.XYs, plotter.XY{X: float64(n), Y: s.Median})
		points.YErrors = append(points.YErrors, struct{ Low, High float64 }{s.Median - s.Least, s.Most - s.Median})
	}
	return points
}
