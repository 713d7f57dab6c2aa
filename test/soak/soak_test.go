//go:build soak

// Package soak runs three servers behind a TCP balancer for some minutes, under a
// steady stream of writes through a real API server, and injects one fault after
// another. "make test-soak" runs it; SOAK=10m repeats the faults for that time.
package soak

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/dynamic"
	ctrl "sigs.k8s.io/controller-runtime"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/replay"
)

// soakTest is the state that faults need.
type soakTest struct {
	t        *testing.T
	plane    *env.Env
	replicas *replicaSet
	counters *counters
	// try is a write that must be denied, for a tenant without a writer; client
	// sends it.
	try    write
	client dynamic.Interface
}

func TestVerdictsUnderFaults(t *testing.T) {
	least := atLeast(t)
	ctrl.SetLogger(logr.Discard()) // envtest logs each CRD that it installs
	plane := env.Start(t)
	tenants := createTenants(t, plane, "soak", len(writerKinds), baseManifests+"---"+platform)
	open := createTenants(t, plane, "window", 6, baseManifests)
	s := &soakTest{t: t, plane: plane, counters: &counters{}, replicas: newReplicaSet(t, plane, 3)}
	awaitCalled(t, plane, tenants[0])

	recorder := replay.Record(t, plane)
	recorder.Options.MayOverride = func(w replay.Write) bool { return strings.HasPrefix(w.Ref.Namespace, "window-") }
	by := developer(t, plane)
	s.client, s.try = client(t, by), create(limitPolicies, tenants[len(tenants)-1].limits("100"), api.ReasonConstraintViolated)
	begun := time.Now()
	s.counters.begin("nothing")
	writers := start(t, tenants, func() dynamic.Interface { return client(t, by) }, s.counters)
	w := startStaleProbe(t, open, client(t, plane.User), s.counters)
	time.Sleep(calm)
	for {
		for _, f := range faults {
			f(s)
		}
		if time.Since(begun) >= least {
			break
		}
	}
	w.end()
	writers.end()

	var out bytes.Buffer
	s.counters.write(&out)
	w.write(&out)
	t.Log("\n" + out.String())
	s.check()
	recorder.RequireSound(t)
}

// atLeast returns the time for which the faults are repeated.
func atLeast(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("SOAK")
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	require.NoError(t, err, "SOAK must be a duration such as 10m")
	return d
}

// awaitCalled waits until the API server calls the servers: until a write is
// denied.
func awaitCalled(t *testing.T, plane *env.Env, w tenant) {
	t.Helper()
	soon(t, func() bool {
		got := plane.Apply(w.limits("100"), "--dry-run=server")
		return strings.Contains(got.Stderr, "ConstraintViolated: ")
	}, "the API server does not call the servers")
}

// withLeader are the phases in which each leader hands over.
var withLeader = []string{"nothing", "each server restarts", "the authority is replaced"}

func (s *soakTest) check() {
	for _, p := range s.counters.phases {
		assert.Zero(s.t, p.wrong, "%s: wrong verdict", p.name)
		assert.Zero(s.t, p.through, "%s: wrongly allowed", p.name)
		assert.Zero(s.t, p.undecided, "%s: not decided", p.name)
		if slices.Contains(withLeader, p.name) {
			assert.Zero(s.t, p.leaderless, "%s: no leader", p.name)
		}
		assert.LessOrEqual(s.t, p.lost, p.bound, "%s: lost", p.name)
		if !p.restarts { // without an API server there may be almost none
			assert.Greater(s.t, p.allowed, int64(10), "%s: allowed", p.name)
			assert.Greater(s.t, p.denied, int64(10), "%s: denied", p.name)
			assert.Zero(s.t, p.cut, "%s: rejected by the API server", p.name)
		}
	}
}
