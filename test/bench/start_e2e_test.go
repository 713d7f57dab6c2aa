//go:build e2e

package bench_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/process"
	"overrule.dev/overrule/test/server"
	"overrule.dev/overrule/test/worlds"
)

// everyReady is the polling interval of readiness: the maximum error of the start
// time, for both programs.
const everyReady = 5 * time.Millisecond

// startLimit is the maximum start time of a program.
const startLimit = 5 * time.Minute

// BenchmarkStart is the time from the start of the process until bin/overrule is
// ready on /readyz, with 10,000 routes, 1,000 gateways and 11,000 policies
// stored. The reference is a program that only lists and watches the same objects
// with shared informers (informers/main.go), and reports on /readyz that all are
// synced. Both run as the same user, on the same idle API server, one after
// another, and take turns at going first.
//
// Included for both: loading the program, TLS to the API server, the lists and
// their decoding. For Overrule only: the lists of CustomResourceDefinitions,
// PolicyProfiles, namespaces, Services and every other policy kind, the indexes,
// and its certificate. Its readiness does not wait for leadership or for the
// webhook configurations, which it writes at the same time.
//
// One op is five starts of each.
func BenchmarkStart(b *testing.B) {
	s := measureStarts(b, worlds.Full.Routes, 5)
	b.ReportMetric(milliseconds(s.overrule.median()), "overrule-ms")
	b.ReportMetric(milliseconds(s.informer.median()), "informer-ms")
	s.overrule.report(b, "overrule-")
	s.informer.report(b, "informer-")
}

// BenchmarkGrowth is BenchmarkStart at several sizes, three starts of each. With
// BENCH_LARGE=1 it includes 100,000 routes, which takes several minutes and 10
// GiB of memory, most of it the API server's.
func BenchmarkGrowth(b *testing.B) {
	sizes := []int{1_000, 3_000, 10_000, 30_000}
	if os.Getenv("BENCH_LARGE") != "" {
		sizes = append(sizes, 100_000)
	}
	for _, routes := range sizes {
		b.Run(fmt.Sprintf("start/routes=%d", routes), func(b *testing.B) {
			s := measureStarts(b, routes, 3)
			b.ReportMetric(milliseconds(s.overrule.median()), "ms")
			b.ReportMetric(milliseconds(s.informer.median()), "informer-ms")
			s.overrule.report(b, "")
			s.informer.report(b, "informer-")
		})
	}
}

func measureStarts(b *testing.B, routes, each int) *starting {
	b.Helper()
	s := newStarting(b, newCluster(b, routes))
	for b.Loop() {
		s.rounds(b, each)
	}
	b.ReportMetric(0, "ns/op") // an op is many starts
	return s
}

// starts are the starts of one program.
type starts struct {
	took []time.Duration
	used []process.Usage // when it was ready
}

func (s *starts) add(took time.Duration, used process.Usage) {
	s.took, s.used = append(s.took, took), append(s.used, used)
}

func (s *starts) median() time.Duration { return quantile(s.took, 0.5) }

// report reports the resource usage of the start, which is less noisy than the
// time.
func (s *starts) report(b *testing.B, prefix string) {
	b.Helper()
	var cpu []time.Duration
	var peak uint64
	for _, u := range s.used {
		cpu, peak = append(cpu, u.CPU), max(peak, u.Peak)
	}
	b.ReportMetric(milliseconds(quantile(cpu, 0.5)), prefix+"cpu-ms")
	b.ReportMetric(float64(peak)/(1<<20), prefix+"peak-MiB")
}

// starting is a cluster in which the programs are started.
type starting struct {
	*cluster
	informers          string // the program
	overrule, informer starts
}

// newStarting starts each program once without measuring: the first server
// creates the authority, and the files of both are then in the page cache.
func newStarting(tb testing.TB, c *cluster) *starting {
	tb.Helper()
	s := &starting{cluster: c, informers: build(tb, "informers")}
	s.rounds(tb, 1)
	s.overrule, s.informer = starts{}, starts{}
	return s
}

// rounds starts each program n times.
func (s *starting) rounds(tb testing.TB, n int) {
	tb.Helper()
	for i := range n {
		turns := []func(testing.TB){s.startInformer, s.startOverrule}
		if i%2 == 1 {
			slices.Reverse(turns)
		}
		for _, start := range turns {
			start(tb)
		}
	}
}

// startOverrule also measures the memory of the server once it is ready.
func (s *starting) startOverrule(tb testing.TB) {
	tb.Helper()
	o, err := s.site.Boot(tb.Context(), server.Options{Unprobed: true, Every: everyReady})
	require.NoError(tb, err)
	used, err := o.Usage()
	require.NoError(tb, err)
	s.overrule.add(o.ReadyAfter, used)
	routes := metric(tb, o, "overrule_objects", `kind="HTTPRoute"`)
	gateways := metric(tb, o, "overrule_objects", `kind="Gateway"`)
	policies := metric(tb, o, "overrule_policies")
	require.NoError(tb, o.Stop())
	assert.GreaterOrEqual(tb, routes, float64(s.size.Routes))
	assert.GreaterOrEqual(tb, gateways, float64(s.size.Gateways))
	assert.GreaterOrEqual(tb, policies, float64(s.size.Routes+s.size.Gateways))
}

func (s *starting) startInformer(tb testing.TB) {
	tb.Helper()
	address := freeAddress(tb)
	p, err := process.Start(process.Spec{Path: s.informers, Args: []string{
		"-kubeconfig=" + s.site.Account.Kubeconfig, "-health-bind-address=" + address,
		"-policies=authpolicies.v1.kuadrant.io,ratelimitpolicies.v1.kuadrant.io",
	}})
	require.NoError(tb, err)
	wait := process.Wait{Limit: startLimit, Pause: everyReady, Problem: "it does not say that all is synced"}
	err = p.Until(tb.Context(), wait, process.OK("http://"+address+"/readyz"))
	took := p.Age()
	used, unknown := p.Usage()
	require.NoError(tb, errors.Join(err, unknown, p.Stop()))
	s.informer.add(took, used)
}
