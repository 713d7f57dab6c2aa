package bench

import (
	"math"
	"slices"
	"testing"
	"time"
)

// quantiles are those that are reported of each latency.
var quantiles = []struct {
	name string
	q    float64
}{{"p50", 0.5}, {"p99", 0.99}, {"p99.9", 0.999}}

// reportQuantiles reports the quantiles of calls as metrics. It sorts them.
func reportQuantiles(b *testing.B, name string, took []time.Duration) {
	b.Helper()
	slices.Sort(took)
	for _, at := range quantiles {
		b.ReportMetric(float64(quantile(took, at.q).Nanoseconds())/1000, name+"-"+at.name+"-µs")
	}
}

// quantile returns the smallest of the sorted times that a share q of them does
// not exceed.
func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[max(int(math.Ceil(q*float64(len(sorted))))-1, 0)]
}
