package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/test/fixture"
)

// What a scrape costs at most once in censusAge. It runs on the goroutine of
// whoever scrapes, and holds no lock that a judge takes.
func BenchmarkCensus(b *testing.B) {
	c, err := fixture.New(fixture.Full)
	require.NoError(b, err)
	v, _ := c.Store.View()
	e := effective.NewEngine()
	b.ReportAllocs()
	for b.Loop() {
		require.NotEmpty(b, (&census{}).count(e, v))
	}
}
