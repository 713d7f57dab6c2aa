package main

import (
	"math"
	"strconv"
	"strings"
)

// unit says how the values of an axis are written.
type unit func(v float64) string

// seconds writes a time as people say it: 300 µs, 1.2 ms, 2 s.
func seconds(v float64) string {
	switch {
	case v >= 0.9995:
		return digits(v) + " s"
	case v >= 0.9995e-3:
		return digits(v*1e3) + " ms"
	}
	return digits(v*1e6) + " µs"
}

func mebibytes(v float64) string { return digits(v) + " MiB" }

func count(v float64) string { return digits(v) }

// digits writes a number with three digits that count, or all that stand
// before the point, in groups of three.
func digits(v float64) string {
	places := max(0, 2-int(math.Floor(math.Log10(v))))
	text := strconv.FormatFloat(v, 'f', places, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	whole, fraction, _ := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if fraction != "" {
		whole += "." + fraction
	}
	return whole
}

// axis is a logarithmic one, from 10^low to 10^high.
type axis struct {
	low, high int
	// from and to are where its ends are, in pixels.
	from, to float64
}

// leastDecades are shown at least on each axis: on fewer, noise would look like
// growth.
const leastDecades = 2

// slack is what the logarithm of a power of ten may be off: 100 ms read from
// nanoseconds is a little more than 0.1 s.
const slack = 1e-9

// axisOver returns the axis of whole decades that holds all values.
func axisOver(values []float64, from, to float64) axis {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		low, high = min(low, math.Log10(v)), max(high, math.Log10(v))
	}
	a := axis{low: int(math.Floor(low + slack)), high: int(math.Ceil(high - slack)), from: from, to: to}
	for a.high-a.low < leastDecades {
		a.high++
		if a.high-a.low < leastDecades {
			a.low--
		}
	}
	return a
}

func (a axis) at(v float64) float64 {
	share := (math.Log10(v) - float64(a.low)) / float64(a.high-a.low)
	return a.from + share*(a.to-a.from)
}

// decades are the values with a tick.
func (a axis) decades() []float64 {
	var out []float64
	for e := a.low; e <= a.high; e++ {
		out = append(out, math.Pow10(e))
	}
	return out
}
