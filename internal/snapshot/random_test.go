package snapshot_test

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// Any sequence of events results in the same view as its final objects applied at once.
func TestViewDependsOnlyOnObjects(t *testing.T) {
	kinds := []*policykind.Kind{choosy(t), paint(t, "Other"), coat(t)}
	for seed := range uint64(30) {
		d := dice{rand.New(rand.NewPCG(seed, 1))}
		last := make(map[api.Ref]snapshot.Object)
		v := (&snapshot.View{}).WithKinds(kinds)
		scratch := v
		for range 200 {
			var changes []snapshot.Change
			for range 1 + d.IntN(3) {
				c := d.change(t, kinds)
				changes = append(changes, c)
				if c.Object == nil {
					delete(last, c.Ref)
				} else {
					last[c.Ref] = c.Object
				}
			}
			v = v.With(changes...)
		}
		for _, o := range last {
			scratch = scratch.With(snapshot.Put(o))
		}
		require.Equal(t, dump(scratch), dump(v), "seed %d", seed)
		for _, c := range last {
			v = v.With(snapshot.Delete(c.Ref()))
		}
		assert.Equal(t, dump((&snapshot.View{}).WithKinds(kinds)), dump(v), "seed %d: nothing is left of nothing", seed)
	}
}

// choosy is a kind that targets by selectors and with a ReferenceGrant, and to which other
// objects refer.
func choosy(t testing.TB) *policykind.Kind {
	t.Helper()
	k, err := policykind.Compile(api.PolicyProfileSpec{
		Group: "example.com", Kind: "Paint", Class: api.Inherited,
		Targets:    api.ProfileTargets{Fields: []string{"targetRefs"}, Namespaces: api.NamespacesReferenceGrant},
		Attachment: api.ProfileAttachment{ExtensionRef: true, ParametersRef: true, Annotation: "example.com/paints"},
	}, policykind.Builtin)
	require.NoError(t, err)
	return k
}

// coat is a kind that Paint attaches.
func coat(t testing.TB) *policykind.Kind {
	t.Helper()
	k, err := policykind.Compile(api.PolicyProfileSpec{
		Group: "example.com", Kind: "Coat", Class: api.Inherited,
		Targets:    api.ProfileTargets{Fields: []string{"targetRefs"}},
		Attachment: api.ProfileAttachment{Through: &api.AttachedThrough{Kind: "Paint", Field: "a"}},
	}, policykind.Builtin)
	require.NoError(t, err)
	return k
}

type dice struct{ *rand.Rand }

// name returns one of few names, so that objects refer to each other.
func (d dice) name() string { return string(rune('a' + d.IntN(3))) }

func (d dice) namespace() string { return []string{"app", "infra"}[d.IntN(2)] }

func (d dice) meta() string {
	return fmt.Sprintf("metadata: {namespace: %s, name: %s, labels: {team: %s}, annotations: {example.com/paints: '%s, %s'}}\n",
		d.namespace(), d.name(), d.name(), d.name(), d.name())
}

func (d dice) change(t testing.TB, kinds []*policykind.Kind) snapshot.Change {
	t.Helper()
	o := d.object(t, kinds)
	if d.IntN(3) == 0 {
		return snapshot.Delete(o.Ref())
	}
	return snapshot.Put(o)
}

func (d dice) object(t testing.TB, kinds []*policykind.Kind) snapshot.Object {
	t.Helper()
	of := func(kind string) api.PolicyKind { return api.PolicyKind{Group: api.GatewayGroup, Kind: kind} }
	switch d.IntN(9) {
	case 0:
		return decode(t, gatewayKind, d.meta()+fmt.Sprintf(
			"spec: {gatewayClassName: %s, infrastructure: {parametersRef: {group: example.com, kind: Paint, name: %s}}}", d.name(), d.name()))
	case 8:
		return decode(t, of("GatewayClass"), fmt.Sprintf(
			"metadata: {name: %s}\nspec: {parametersRef: {group: example.com, kind: Paint, namespace: %s, name: %s}}", d.name(), d.namespace(), d.name()))
	case 1:
		return decode(t, of("ListenerSet"), d.meta()+fmt.Sprintf("spec: {parentRef: {name: %s, namespace: %s}}", d.name(), d.namespace()))
	case 2:
		return decode(t, api.PolicyKind{Kind: "Service"}, d.meta())
	case 3:
		return decode(t, api.PolicyKind{Kind: "Namespace"}, fmt.Sprintf("metadata: {name: %s, labels: {team: %s}}", d.namespace(), d.name()))
	case 4:
		return decode(t, of("ReferenceGrant"), d.meta()+fmt.Sprintf(
			"spec: {from: [{group: example.com, kind: Paint, namespace: %s}], to: [{group: gateway.networking.k8s.io, kind: HTTPRoute}]}", d.namespace()))
	case 5:
		return d.route(t)
	default:
		return d.policy(t, kinds[d.IntN(len(kinds))])
	}
}

func (d dice) route(t testing.TB) snapshot.Object {
	t.Helper()
	kind := []string{"HTTPRoute", "TCPRoute"}[d.IntN(2)]
	parent := []string{"", "kind: ListenerSet, ", "group: '', kind: Service, "}[d.IntN(3)]
	return decode(t, api.PolicyKind{Group: api.GatewayGroup, Kind: kind}, d.meta()+fmt.Sprintf(
		"spec: {parentRefs: [{%snamespace: %s, name: %s}, {namespace: %s, name: %s}], rules: [{backendRefs: [{name: %s}, {name: %s, namespace: %s}, {name: %s, group: x.com, kind: Box}], filters: [{extensionRef: {group: example.com, kind: %s, name: %s}}]}]}",
		parent, d.namespace(), d.name(), d.namespace(), d.name(), d.name(), d.name(), d.namespace(), d.name(), []string{"Paint", "Other"}[d.IntN(2)], d.name()))
}

func (d dice) policy(t testing.TB, k *policykind.Kind) snapshot.Object {
	t.Helper()
	target := func() string {
		if d.IntN(3) > 0 {
			return fmt.Sprintf("{kind: HTTPRoute, name: %s, namespace: %s}", d.name(), d.namespace())
		}
		from := []string{"Same", "All", "Selector, selector: {matchLabels: {team: " + d.name() + "}}"}[d.IntN(3)]
		return fmt.Sprintf("{kind: %s, selector: {matchLabels: {team: %s}}, namespaces: {from: %s}}",
			[]string{"HTTPRoute", "Gateway"}[d.IntN(2)], d.name(), from)
	}
	return decodeAs(t, k.Ref(), k, d.meta()+"spec: {a: "+d.name()+", targetRefs: ["+target()+", "+target()+"]}")
}

// dump formats everything in a view about the objects that dice generates.
func dump(v *snapshot.View) []string {
	var out []string
	add := func(what string, list []string) {
		out = append(out, what+":")
		out = append(out, list...)
	}
	var refs []api.Ref
	for _, kind := range allKinds(v) {
		add(kind.String(), names(v.Objects(kind)))
		for _, namespace := range []string{"app", "infra"} {
			add("in "+namespace, names(v.In(kind, namespace)))
			add("targets in "+namespace, names(v.TargetsIn(kind, namespace)))
			add("backends in "+namespace, names(v.BackendsIn(kind, namespace)))
			for _, name := range []string{"a", "b", "c"} {
				refs = append(refs, api.Ref{Group: kind.Group, Kind: kind.Kind, Namespace: namespace, Name: name})
			}
		}
		for _, name := range []string{"a", "b", "c"} {
			refs = append(refs, api.Ref{Group: kind.Group, Kind: kind.Kind, Name: name})
		}
		add("selecting", names(v.Selecting(kind)))
	}
	for r := range everyRoute(v, refs) {
		if v.Get(r.Ref()) != snapshot.Object(r) {
			out = append(out, r.Ref().String()+" as it was once")
		}
	}
	for _, ref := range refs {
		add("routes of "+ref.String(), names(v.RoutesOf(ref)))
		add("routes to "+ref.String(), names(v.RoutesTo(ref)))
		add("on "+ref.String(), targeting(v.On(ref)))
		if p, ok := v.Get(ref).(*policykind.Policy); ok {
			for _, t := range v.Targets(p) {
				add("target of "+ref.String(), []string{t.String(), t.Refused, t.AttachedBy})
			}
		}
		if g, ok := v.Get(ref).(*gateway.Gateway); ok {
			add("sets of "+ref.String(), names(v.SetsOf(g)))
		}
	}
	for _, class := range []string{"a", "b", "c"} {
		add("gateways of "+class, names(v.GatewaysOf(class)))
	}
	return out
}

// everyRoute yields the routes of all indexes.
func everyRoute(v *snapshot.View, refs []api.Ref) iter.Seq[*gateway.Route] {
	return func(yield func(*gateway.Route) bool) {
		for _, ref := range refs {
			for _, index := range []iter.Seq[*gateway.Route]{v.RoutesOf(ref), v.RoutesTo(ref)} {
				for r := range index {
					if !yield(r) {
						return
					}
				}
			}
		}
	}
}

func targeting(on iter.Seq2[*policykind.Policy, policykind.Target]) []string {
	var out []string
	for p, t := range on {
		out = append(out, fmt.Sprintf("%s version %d: %s %s %s", p.Ref(), p.Version, t, t.Refused, t.AttachedBy))
	}
	return out
}

func allKinds(v *snapshot.View) []api.PolicyKind {
	out := []api.PolicyKind{{Kind: "Namespace"}, {Kind: "Service"}, {Group: "x.com", Kind: "Box"}}
	for _, kind := range gateway.GatewayKinds {
		out = append(out, api.PolicyKind{Group: api.GatewayGroup, Kind: kind})
	}
	for _, k := range v.Kinds() {
		out = append(out, k.Ref())
	}
	return out
}

// On and Targets agree.
func TestOnAndTargetsAgree(t *testing.T) {
	kinds := []*policykind.Kind{choosy(t), paint(t, "Other")}
	for seed := range uint64(20) {
		d := dice{rand.New(rand.NewPCG(seed, 2))}
		v := (&snapshot.View{}).WithKinds(kinds)
		for range 60 {
			v = v.With(snapshot.Put(d.object(t, kinds)))
		}
		on := make(map[string]int)
		for _, kind := range allKinds(v) {
			for o := range v.Objects(kind) {
				for _, text := range targeting(v.On(o.Ref())) {
					on[text]++
				}
			}
		}
		targets := make(map[string]int)
		for _, k := range kinds {
			for p := range v.Policies(k.Ref()) {
				for _, target := range slices.DeleteFunc(v.Targets(p), func(t policykind.Target) bool { return v.Get(t.Ref) == nil }) {
					targets[fmt.Sprintf("%s version %d: %s %s %s", p.Ref(), p.Version, target, target.Refused, target.AttachedBy)]++
				}
			}
		}
		assert.Equal(t, targets, on, "seed %d", seed)
	}
}

// The references are indexed whether the kind is known before the objects or after them.
func TestReferencesOfAKindThatComesLater(t *testing.T) {
	kinds := []*policykind.Kind{choosy(t), paint(t, "Other")}
	for seed := range uint64(20) {
		d := dice{rand.New(rand.NewPCG(seed, 3))}
		first, later := (&snapshot.View{}).WithKinds(kinds), &snapshot.View{}
		var policies []snapshot.Change
		for range 60 {
			c := snapshot.Put(d.object(t, kinds))
			first = first.With(c)
			if _, ok := c.Object.(*policykind.Policy); ok {
				policies = append(policies, c)
			} else {
				later = later.With(c)
			}
		}
		require.Equal(t, dump(first), dump(later.WithKinds(kinds).With(policies...)), "seed %d", seed)
		require.Equal(t, dump(later), dump(first.WithKinds(nil)), "seed %d: without the kinds", seed)
	}
}
