package inflight

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/apimachinery/pkg/types"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// Objects of the tests: a route on a gateway, where a policy of the gateway
// clips what is over 50.
var (
	gatewayGroup = worlds.GatewayDoc("edge", "class", "http")
	route        = worlds.RouteDoc("r", "[{}]", "edge")
	limit        = worlds.PolicyDoc("Paint", "infra", "limit", "targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: edge}]\n"+
		"overrides: {strategy: patch, when: 'spec.a > 50', a: 50}")
	greedy = onRoute("greedy", "a: 100")
	modest = onRoute("modest", "a: 10")
)

func onRoute(name, spec string) string {
	return worlds.PolicyDoc("Paint", "app", name, "targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: r}]\n"+spec)
}

// What is said of the greedy policy where the limit is known.
const clipped = "ConstraintViolated: a: Invalid value: 100: not allowed by Paint infra/limit on Gateway infra/edge (when: spec.a > 50): it would be replaced by 50"

// everyone may remove overrides.
type everyone struct{}

func (everyone) MayOverride(context.Context, *authenticationv1.UserInfo, api.Ref) (bool, error) {
	return true, nil
}

func (everyone) Check(api.Ref) string { return "" }

// harness is a store with a log of the writes in flight.
type harness struct {
	*testing.T
	store *snapshot.Store
	guard *guard.Guard
	log   *Log
}

// newHarness returns a harness whose writes do not wait.
func newHarness(t *testing.T, o Options, docs ...string) *harness {
	t.Helper()
	s := &harness{T: t, store: snapshot.New()}
	s.guard = &guard.Guard{Engine: effective.NewEngine(), Permissions: everyone{}}
	if o.MaxWait == 0 {
		o.MaxWait = -1
	}
	s.log = New(s.store, o)
	for _, k := range worlds.World(t, route).Kinds() {
		s.store.AddKind(k)
		s.store.KindListed(k.Ref())
	}
	for _, doc := range docs {
		s.put(doc)
	}
	return s
}

func (s *harness) view() *snapshot.View {
	v, _ := s.store.View()
	return v
}

func (s *harness) read(doc string) snapshot.Object {
	s.Helper()
	return worlds.Read(s, s.view(), doc)
}

// put makes the view hold an object without an observation.
func (s *harness) put(doc string) { s.store.Apply(snapshot.Put(s.read(doc))) }

// uid is that of every object of a name.
func uid(o snapshot.Object) types.UID { return types.UID(o.Ref().Key()) }

// observe plays the event of an object that was stored.
func (s *harness) observe(doc, version string) {
	o := s.read(doc)
	s.store.Apply(snapshot.Put(o))
	s.store.Observe(snapshot.Observation{Ref: o.Ref(), UID: uid(o), Version: version})
}

// create, update and remove are writes. An object that is there has version 10.
func (s *harness) create(doc string) Write {
	s.Helper()
	o := s.read(doc)
	return Write{Change: guard.Change{Operation: guard.Create, After: o}, Precondition: func() Precondition { return Precondition{UID: uid(o)} }}
}

func (s *harness) update(was, is string) Write {
	s.Helper()
	o := s.read(is)
	return Write{
		Change:       guard.Change{Operation: guard.Update, Before: s.read(was), After: o},
		Precondition: func() Precondition { return Precondition{uid(o), "10"} },
	}
}

func (s *harness) remove(doc string) Write {
	s.Helper()
	o := s.read(doc)
	return Write{
		Change:       guard.Change{Operation: guard.Delete, Before: o},
		Precondition: func() Precondition { return Precondition{uid(o), "10"} },
	}
}

func (s *harness) evaluate(w Write) Result {
	s.Helper()
	d, err := s.log.Evaluate(s.Context(), s.guard, s.view, w)
	require.NoError(s, err)
	return d
}

// admit requires that a write is allowed.
func (s *harness) admit(w Write) {
	s.Helper()
	require.Empty(s, denials(s.evaluate(w)))
}

// denials returns what is denied, as in "Retry ConstraintViolated: message".
func denials(d Result) []string {
	var out []string
	for _, f := range d.Decision.Denials {
		text := fmt.Sprintf("%s: %s", f.Code, f.What)
		if d.Retry {
			text = "Retry " + text
		}
		out = append(out, text)
	}
	return out
}

// met names what a write meets of what is in flight.
func (s *harness) met(w Write) []string {
	s.Helper()
	t := evaluation{log: s.log, guard: s.guard, write: w, ref: w.Change.Object().Ref(), view: s.view}
	s.log.begin(&t)
	defer s.log.finish(&t)
	_, entries := s.log.snapshot(&t)
	var out []string
	for _, e := range entries {
		out = append(out, e.ref.String())
	}
	return out
}
