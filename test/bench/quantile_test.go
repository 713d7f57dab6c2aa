package bench

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
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

func TestQuantile(t *testing.T) {
	thousand := make([]time.Duration, 1000)
	for i := range thousand {
		thousand[i] = time.Duration(i + 1)
	}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 500, 0.99: 990, 0.999: 999, 1: 1000} {
		assert.Equal(t, want, quantile(thousand, q))
	}
	assert.Equal(t, time.Duration(9), quantile([]time.Duration{1, 2, 9}, 0.99), "of few, the tail is the top")
}
