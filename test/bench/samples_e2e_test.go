//go:build e2e

package bench_test

import (
	"slices"
	"testing"
	"time"
)

// samples are the durations of each round, by variant.
type samples map[string][]time.Duration

// none is the variant that the others are compared with, round by round.
const none = "none"

// report reports the quantiles, and how much slower than none each variant was:
// the median of the differences, since noise affects all variants of a round.
func (s samples) report(b *testing.B, prefix string) {
	b.Helper()
	for name, took := range s {
		b.ReportMetric(milliseconds(quantile(took, 0.5)), prefix+name+"-p50-ms")
		b.ReportMetric(milliseconds(quantile(took, 0.99)), prefix+name+"-p99-ms")
		if name != none {
			b.ReportMetric(milliseconds(quantile(s.added(name), 0.5)), prefix+name+"-added-ms")
		}
	}
}

// added returns how much longer a variant took than none in the same round.
func (s samples) added(name string) []time.Duration {
	out := make([]time.Duration, len(s[name]))
	for i, took := range s[name] {
		out[i] = took - s[none][i]
	}
	return out
}

// quantile returns the q-th of at least one sample: the nearest one that is not
// above it.
func quantile(of []time.Duration, q float64) time.Duration {
	return slices.Sorted(slices.Values(of))[int(q*float64(len(of)-1))]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
