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
	tests := map[string]struct {
		sorted []time.Duration
		q      float64
		want   time.Duration
	}{
		"half of a thousand":          {thousand, 0.5, 500},
		"99 of a hundred":             {thousand, 0.99, 990},
		"all but one of a thousand":   {thousand, 0.999, 999},
		"the last":                    {thousand, 1, 1000},
		"the first":                   {thousand, 0, 1},
		"the middle of three":         {[]time.Duration{1, 2, 9}, 0.5, 2},
		"of few, the tail is the top": {[]time.Duration{1, 2, 9}, 0.99, 9},
		"of one, all are it":          {[]time.Duration{7}, 0.5, 7},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, quantile(test.sorted, test.q))
		})
	}
}
