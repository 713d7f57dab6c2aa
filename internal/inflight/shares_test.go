package inflight

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	authenticationv1 "k8s.io/api/authentication/v1"

	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// by is a write of a user.
func by(user string, w Write) Write {
	w.Change.User = &authenticationv1.UserInfo{Username: user}
	return w
}

// elsewhere is a gateway without a route.
func elsewhere(namespace, name string) string {
	return "apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {namespace: " + namespace + ", name: " + name + "}\n" +
		"spec: {gatewayClassName: class, listeners: [{name: http, protocol: HTTP, port: 80}]}"
}

func namespaces(names ...string) []string {
	var out []string
	for _, n := range names {
		out = append(out, "kind: Namespace\nmetadata: {name: "+n+"}")
	}
	return out
}

// fill admits writes of a user until one is denied, and returns how many were
// admitted.
func (s *harness) fill(user string, namespace func(i int) string) int {
	s.Helper()
	for i := range 10_000 {
		d := s.evaluate(by(user, s.create(elsewhere(namespace(i), fmt.Sprintf("%s-%d", user, i)))))
		if d.Decision.Denied() {
			assert.True(s, d.Retry)
			assert.Contains(s, denials(d)[0], "Retry TooMuch: too many admitted writes not yet observed, by this user or in namespace "+namespace(i))
			return i
		}
	}
	s.Fatal("there is no end of it")
	return 0
}

func in(namespace string) func(int) string { return func(int) string { return namespace } }

func TestNoOwnerHasWholeQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newHarness(t, Options{MaxWrites: 400}, append(namespaces("app", "infra", "a", "b", "c", "d"), gatewayGroup, route)...)
		free := func(user, namespace string) {
			t.Helper()
			s.admit(by(user, s.create(elsewhere(namespace, user+"-is-free"))))
		}
		assert.Equal(t, 100, s.fill("tenant", in("app")), "half of the half that a namespace has")
		free("admin", "infra")
		free("neighbour", "app")
		assert.Equal(t, 199, 100+s.fill("tenant", func(i int) string { return []string{"a", "b", "c", "d"}[i%4] }), "half of all")
		free("admin", "a")
		for i := range 20 {
			s.fill(fmt.Sprintf("account-%d", i), in("app"))
		}
		free("admin", "infra")
		free("neighbour", "infra")
		assert.LessOrEqual(t, s.log.Len(), 400)
	})
}

func TestUnknownNamespacesShareOneQuota(t *testing.T) {
	s := newHarness(t, Options{MaxWrites: 400}, append(namespaces("infra"), gatewayGroup, route)...)
	forged := 0
	for i := range 1000 {
		w := by(fmt.Sprintf("forged-%d", i), s.create(elsewhere(fmt.Sprintf("none-%d", i), "g")))
		if !s.evaluate(w).Decision.Denied() {
			forged++
		}
	}
	assert.Equal(t, 200, forged)
	s.admit(by("admin", s.create(elsewhere("infra", "g"))))
}

func TestByteQuota(t *testing.T) {
	s := newHarness(t, Options{MaxBytes: 32 << 20}, append(namespaces("app", "infra"), gatewayGroup, route)...)
	large := func(user, namespace string, i int) bool {
		w := by(user, s.create(elsewhere(namespace, fmt.Sprint(user, i))))
		w.Size = 1600 << 10
		return !s.evaluate(w).Decision.Denied()
	}
	admitted := 0
	for i := range 20 {
		if large("tenant", "app", i) {
			admitted++
		}
	}
	assert.Equal(t, 5, admitted, "8 MiB, a quarter")
	assert.True(t, large("admin", "infra", 0))
}

func TestSingleLargeWriteIsTracked(t *testing.T) {
	s := newHarness(t, Options{MaxBytes: 1000}, gatewayGroup, route)
	w := s.create(limit)
	w.Size = 5000
	s.admit(w)
	full := "Retry TooMuch: too many admitted writes not yet observed, by this user or in namespace app"
	assert.Equal(t, []string{full}, denials(s.evaluate(s.create(modest))))
	assert.Equal(t, with(ofLimit), denials(s.evaluate(s.create(greedy))), "a denial needs no room")
	dry := s.create(modest)
	dry.DryRun = true
	assert.Empty(t, denials(s.evaluate(dry)), "nor does a dry run")
	lenient := s.create(modest)
	lenient.Enforcement = guard.EnforceWarn
	assert.Empty(t, denials(s.evaluate(lenient)), "nor does who denies nothing")
	s.observe(limit, "11")
	s.admit(s.create(modest))
}

func TestObservedWriteFreesQuota(t *testing.T) {
	s := newHarness(t, Options{MaxWrites: 40}, append(namespaces("app"), gatewayGroup, route)...)
	n := s.fill("tenant", in("app"))
	for i := range n {
		s.observe(elsewhere("app", fmt.Sprintf("tenant-%d", i)), "11")
	}
	assert.Equal(t, newShares(), s.log.shares)
	assert.Equal(t, newIndex(), s.log.index)
}

func TestUnobservedWritesExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newHarness(t, Options{}, gatewayGroup, route)
		s.admit(s.create(limit))
		time.Sleep(DefaultRequestTimeout + minLatency - time.Nanosecond)
		assert.Equal(t, with(ofLimit), denials(s.evaluate(s.create(greedy))), "it may be stored yet")
		time.Sleep(time.Nanosecond)
		assert.Zero(t, s.log.Len())
		assert.Empty(t, s.log.entries, "nothing is left behind")
		s.admit(s.create(greedy))
	})
}

func TestExpiryFollowsLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newHarness(t, Options{}, gatewayGroup, route)
		kept := func() time.Duration {
			start, doc := time.Now(), elsewhere("infra", fmt.Sprintf("g%d", time.Now().UnixNano()))
			s.admit(s.create(doc))
			for s.log.Len() > 0 {
				time.Sleep(time.Second)
			}
			return time.Since(start)
		}
		observed := func(after time.Duration) {
			s.admit(s.create(limit))
			time.Sleep(after)
			s.observe(limit, "11")
			s.store.Apply(snapshot.Delete(s.read(limit).Ref()))
		}
		observed(20 * time.Second)
		assert.Equal(t, 80*time.Second, kept())
		observed(time.Second)
		assert.Equal(t, 80*time.Second, kept(), "that of the minute before counts")
		observed(time.Second)
		time.Sleep(time.Minute)
		observed(time.Second)
		assert.Equal(t, 65*time.Second, kept())
	})
	l := latency{now: time.Hour}
	assert.Equal(t, maxLatency, l.bound())
}

func TestCreateOfExistingIsNotTracked(t *testing.T) {
	there := elsewhere("infra", "there")
	for name, c := range map[string]struct {
		before func(*harness)
		write  func(*harness) Write
		want   int
	}{
		"and goes nowhere":     {func(*harness) {}, func(s *harness) Write { return s.create(there) }, 0},
		"and is being deleted": {func(s *harness) { s.admit(s.remove(there)) }, func(s *harness) Write { return s.create(there) }, 2},
		"and is being updated": {func(s *harness) { s.admit(s.update(there, worlds.GatewayDoc("there", "other", "http"))) }, func(s *harness) Write { return s.create(there) }, 1},
		"and its deletion ended": {func(s *harness) {
			s.admit(s.remove(there))
			s.store.Apply(snapshot.Delete(s.read(there).Ref()))
			s.store.Observe(snapshot.Observation{Ref: s.read(there).Ref(), UID: uid(s.read(there)), Version: "11", Deleted: true})
		}, func(s *harness) Write { return s.create(there) }, 1},
		"and loses its last finalizer": {func(s *harness) {
			w := s.update(there, there)
			w.Finalized = true
			s.admit(w)
		}, func(s *harness) Write { return s.create(there) }, 2},
		"and the name is generated": {func(*harness) {}, func(s *harness) Write {
			w := s.create(there)
			w.Generated = true
			return w
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newHarness(t, Options{}, gatewayGroup, route, there)
			c.before(s)
			s.admit(c.write(s))
			assert.Equal(t, c.want, s.log.Len())
		})
	}
}

// The removal of the last finalizer is the end of what a write depends on.
func TestLastFinalizer(t *testing.T) {
	s := newHarness(t, Options{}, gatewayGroup, route, limit)
	w := s.update(limit, limit)
	w.Finalized = true
	s.admit(w)
	assert.Equal(t, without(ofLimit), denials(s.evaluate(s.create(greedy))))
}
