//go:build e2e

package bench_test

import (
	"slices"
	"testing"
	"time"
)

// samples are how long each round took, by what was measured.
type samples map[string][]time.Duration

// none is what the others are compared with, round by round.
const none = "none"

// report tells the quantiles, and by how much each was slower than none: the
// median of the differences, since what disturbs a round disturbs all of it.
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

// added is by how much one took longer than none in the same round.
func (s samples) added(name string) []time.Duration {
	out := make([]time.Duration, len(s[name]))
	for i, took := range s[name] {
		out[i] = took - s[none][i]
	}
	return out
}

// quantile of at least one sample: the nearest of those that are not above it.
func quantile(of []time.Duration, q float64) time.Duration {
	return slices.Sorted(slices.Values(of))[int(q*float64(len(of)-1))]
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
