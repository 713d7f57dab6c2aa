package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/perf/benchfmt"
)

// errNoCurves tells that the input has nothing to draw.
var errNoCurves = errors.New("the input has no result of BenchmarkGrowth: give the output of `make bench-growth`")

// panel is one of the small pictures: curves over the number of routes.
type panel struct {
	title  string
	unit   unit
	curves []curve
}

// curve is one metric of BenchmarkGrowth/<what>.
type curve struct {
	what, metric string
	label        string
	// scale makes base units (seconds, MiB) of the metric.
	scale  float64
	points []point
}

// point is the median of what was measured with so many routes.
type point struct{ routes, value float64 }

// perOp is the metric ns/op, as benchfmt gives it: in seconds.
const perOp = "sec/op"

// panels are what is drawn, still without points.
func panels() []panel {
	return []panel{
		{title: "One write", unit: seconds, curves: []curve{
			{what: "gateway-policy-all", metric: perOp, scale: 1, label: "policy of a gateway with all routes"},
			{what: "gateway-policy", metric: perOp, scale: 1, label: "policy of a gateway with 100 routes"},
			{what: "route-write", metric: perOp, scale: 1, label: "a route"},
		}},
		{title: "One event", unit: seconds, curves: []curve{
			{what: "event", metric: perOp, scale: 1, label: "of a route"},
			{what: "event-policy", metric: perOp, scale: 1, label: "of a policy"},
		}},
		{title: "Memory held", unit: mebibytes, curves: []curve{
			{what: "memory", metric: "MiB", scale: 1, label: "routes, gateways and policies"},
		}},
		{title: "Start to ready", unit: seconds, curves: []curve{
			{what: "start", metric: "ms", scale: 1e-3, label: "Overrule"},
			{what: "start", metric: "informer-ms", scale: 1e-3, label: "a bare informer's list of the same"},
		}},
	}
}

// fill returns the panels with the points that the results give. A figure that
// was measured several times counts with its median.
func fill(results []*benchfmt.Result) ([]panel, error) {
	out, drawn := panels(), false
	for i := range out {
		for j := range out[i].curves {
			c := &out[i].curves[j]
			var err error
			if c.points, err = c.collect(results); err != nil {
				return nil, err
			}
			drawn = drawn || len(c.points) > 0
		}
	}
	if !drawn {
		return nil, errNoCurves
	}
	return out, nil
}

func (c *curve) collect(results []*benchfmt.Result) ([]point, error) {
	values := make(map[float64][]float64)
	for _, r := range results {
		routes, ok, err := sizeOf(r, c.what)
		if err != nil {
			return nil, err
		}
		v, measured := r.Value(c.metric)
		if !ok || !measured {
			continue
		}
		if v <= 0 {
			return nil, fmt.Errorf("%s: %s is %v, which has no place on a logarithmic axis", r.Name, c.metric, v)
		}
		values[routes] = append(values[routes], v*c.scale)
	}
	var out []point
	for _, routes := range slices.Sorted(maps.Keys(values)) {
		out = append(out, point{routes, median(values[routes])})
	}
	return out, nil
}

// sizeOf returns the number of routes of a result, if it is one of that curve.
func sizeOf(r *benchfmt.Result, what string) (float64, bool, error) {
	name, parts := r.Name.Parts()
	if string(name) != "Growth" || len(parts) < 2 || string(parts[0]) != "/"+what {
		return 0, false, nil
	}
	text, ok := strings.CutPrefix(string(parts[1]), "/routes=")
	n, err := strconv.ParseUint(text, 10, 32)
	if !ok || err != nil || n == 0 {
		return 0, false, fmt.Errorf("%s: %q is no number of routes, as in /routes=1000", r.Name, parts[1])
	}
	return float64(n), true, nil
}

func median(values []float64) float64 {
	slices.SortFunc(values, cmp.Compare[float64])
	n := len(values)
	return (values[(n-1)/2] + values[n/2]) / 2
}
