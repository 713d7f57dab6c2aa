//go:build e2e

package bench_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/fixture"
	"overrule.dev/overrule/test/process"
	"overrule.dev/overrule/test/server"
)

// everyReady is the pause between two looks at whether a program is ready: what
// it says is seen that much too late at most, of whichever program.
const everyReady = 5 * time.Millisecond

// BenchmarkStart is the time from the start of the process until bin/overrule
// says on /readyz that it is ready, with 10,000 routes, 1,000 gateways and
// 11,000 policies stored, beside that of a program which does no more than list
// and watch the same objects with shared informers (informers/main.go), and says
// on /readyz that all are synced. Both run as the same user, on the same idle API
// server, one after another, and take turns at going first.
//
// Counted for both: loading the program, TLS to the API server, the lists and
// their decoding. For Overrule alone: the lists of CustomResourceDefinitions, of
// PolicyProfiles, namespaces and Services and of every other policy kind that is
// defined, the indexes, and its certificate. Its readiness waits for neither
// leadership nor the webhook configurations, which it writes at the same time.
//
// One op is five starts of each.
func BenchmarkStart(b *testing.B) {
	took := measureStarts(b, fixture.Full.Routes, 5)
	overrule, informer := quantile(took["overrule"], 0.5), quantile(took["informer"], 0.5)
	b.ReportMetric(milliseconds(overrule), "overrule-ms")
	b.ReportMetric(milliseconds(informer), "informer-ms")
	b.ReportMetric(float64(overrule)/float64(informer), "ratio")
}

// BenchmarkGrowth is BenchmarkStart at several sizes, three starts of each. With
// BENCH_LARGE=1 it goes on to 100,000 routes, which takes several minutes and 10 GiB of
// memory, most of it the API server's.
func BenchmarkGrowth(b *testing.B) {
	sizes := []int{1_000, 3_000, 10_000, 30_000}
	if os.Getenv("BENCH_LARGE") != "" {
		sizes = append(sizes, 100_000)
	}
	for _, routes := range sizes {
		b.Run(fmt.Sprintf("start/routes=%d", routes), func(b *testing.B) {
			took := measureStarts(b, routes, 3)
			b.ReportMetric(milliseconds(quantile(took["overrule"], 0.5)), "ms")
			b.ReportMetric(milliseconds(quantile(took["informer"], 0.5)), "informer-ms")
		})
	}
}

func measureStarts(b *testing.B, routes, each int) samples {
	b.Helper()
	s := newStarting(b, newCluster(b, routes))
	into := samples{}
	for b.Loop() {
		s.rounds(b, each, into)
	}
	b.ReportMetric(0, "ns/op") // an op is many starts
	return into
}

// starting is a cluster beside which programs are started.
type starting struct {
	*cluster
	informers string // the program
}

// newStarting starts each program once, unmeasured: the first server makes the
// authority, and the files of both are in memory then.
func newStarting(tb testing.TB, c *cluster) *starting {
	tb.Helper()
	s := &starting{cluster: c, informers: build(tb, "informers")}
	s.rounds(tb, 1, samples{})
	return s
}

// rounds starts each program so many times, and adds how long it took.
func (s *starting) rounds(tb testing.TB, n int, into samples) {
	tb.Helper()
	for i := range n {
		if i%2 == 0 {
			into["informer"] = append(into["informer"], s.informer(tb))
		}
		into["overrule"] = append(into["overrule"], s.overrule(tb))
		if i%2 == 1 {
			into["informer"] = append(into["informer"], s.informer(tb))
		}
	}
}

// overrule also looks at what the server holds once it is ready.
func (s *starting) overrule(tb testing.TB) time.Duration {
	tb.Helper()
	o, err := s.site.Boot(tb.Context(), server.Options{Unprobed: true, Every: everyReady})
	require.NoError(tb, err)
	objects := metric{o.Metrics, "overrule_objects", "kind"}.read(tb)
	policies := 0.0
	for _, n := range (metric{o.Metrics, "overrule_policies", "kind"}).read(tb) {
		policies += n
	}
	require.NoError(tb, o.Stop())
	assert.GreaterOrEqual(tb, objects["HTTPRoute"], float64(s.size.Routes))
	assert.GreaterOrEqual(tb, objects["Gateway"], float64(s.size.Gateways))
	assert.GreaterOrEqual(tb, policies, float64(s.size.Routes+s.size.Gateways))
	return o.ReadyAfter
}

func (s *starting) informer(tb testing.TB) time.Duration {
	tb.Helper()
	address := freeAddress(tb)
	p, err := process.Start(process.Spec{Path: s.informers, Args: []string{
		"-kubeconfig=" + s.site.Account.Kubeconfig, "-health-bind-address=" + address,
		"-policies=authpolicies.v1.kuadrant.io,ratelimitpolicies.v1.kuadrant.io",
	}})
	require.NoError(tb, err)
	wait := process.Wait{Limit: 2 * time.Minute, Pause: everyReady, Problem: "it does not say that all is synced"}
	err = p.Until(tb.Context(), wait, process.OK("http://"+address+"/readyz"))
	took := p.Age()
	require.NoError(tb, p.Stop())
	require.NoError(tb, err)
	return took
}
