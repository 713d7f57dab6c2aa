package watch

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/hierarchy"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/store"
)

// atWork is a rig that has read a cluster of an HTTPRoute, a ColorPolicy, a
// constraint and a profile of another kind.
func atWork(t *testing.T) (*rig, *Watcher) {
	t.Helper()
	r := newRig(t)
	r.replace(r.defs(profileCRD, constraintCRD, colorCRD, httpCRD, paintCRD))
	r.list(profileCRD.obj().Name, paint(t, "paint", 1, "direct"))
	r.list(constraintCRD.obj().Name, limited("app", "a", 1, atMost(1)))
	r.list(colorCRD.obj().Name, policy(colorCRD.kind, "app", "p"))
	r.list(paintCRD.obj().Name, policy(paintCRD.kind, "app", "p"))
	r.list(httpCRD.obj().Name, httpRoute("r"))
	return r, &Watcher{clients: r.clients, registry: r.registry}
}

func definitionOf(c crd) *policykind.Definition {
	return &policykind.Definition{CustomResourceDefinition: *c.obj()}
}

func TestAKindThatWasNeverListedIsReadAgain(t *testing.T) {
	r := newRig(t)
	r.replace(r.defs(colorCRD, httpCRD))
	w := &Watcher{clients: r.clients, registry: r.registry}
	v, _ := r.store.View()
	require.Equal(t, []string{colorCRD.kind}, r.unlisted())
	got, err := w.Reread(t.Context(), v, definitionOf(colorCRD), definitionOf(edited(colorCRD, func(c *crd) { c.versions = []string{"v2", "v1"} })))
	require.NoError(t, err)
	assert.Same(t, v, got, "it is read as before")
	for name, after := range map[string]store.Object{
		"its definition is deleted":           nil,
		"its definition is of no policy kind": definitionOf(edited(colorCRD, func(c *crd) { c.label = "" })),
	} {
		got, err := w.Reread(t.Context(), v, definitionOf(colorCRD), after)
		require.NoError(t, err, name)
		assert.Empty(t, got.Unlisted(), name)
	}
}

// counts are the numbers of objects of the kinds that are there.
func counts(v *store.View) map[string]int {
	out := map[string]int{}
	paintRef := api.PolicyKind{Group: paintCRD.group, Kind: paintCRD.kind}
	for _, k := range []api.PolicyKind{colorRef, paintRef, gatewayKind(hierarchy.KindHTTPRoute), {Group: api.Group, Kind: api.KindPolicyConstraint}} {
		if n := v.Count(k); n > 0 {
			out[k.Kind] = n
		}
	}
	return out
}

func TestWhatIsLeftOnceADefinitionIsGone(t *testing.T) {
	all := map[string]int{colorCRD.kind: 1, paintCRD.kind: 1, "HTTPRoute": 1, "PolicyConstraint": 1}
	without := func(kind string) map[string]int {
		out := map[string]int{}
		for k, n := range all {
			if k != kind {
				out[k] = n
			}
		}
		return out
	}
	unserved := func(c crd) crd {
		c.versions, c.unserved = nil, c.versions
		return c
	}
	for name, c := range map[string]struct {
		before, after *policykind.Definition
		want          map[string]int
	}{
		"of a policy kind":                                 {before: definitionOf(colorCRD), want: without(colorCRD.kind)},
		"of a policy kind that is not served":              {definitionOf(colorCRD), definitionOf(unserved(colorCRD)), without(colorCRD.kind)},
		"of a kind of Gateway API":                         {before: definitionOf(httpCRD), want: without("HTTPRoute")},
		"of constraints":                                   {before: definitionOf(constraintCRD), want: without("PolicyConstraint")},
		"of the profiles, which makes their kinds unknown": {before: definitionOf(profileCRD), want: without(paintCRD.kind)},
		"of a kind that is not read":                       {before: definitionOf(serviceMonitorCRD), want: all},
	} {
		t.Run(name, func(t *testing.T) {
			r, w := atWork(t)
			v, _ := r.store.View()
			require.Equal(t, all, counts(v))
			var after store.Object
			if c.after != nil {
				after = c.after
			}
			got, err := w.Reread(t.Context(), v, c.before, after)
			require.NoError(t, err)
			assert.Equal(t, c.want, counts(got))
			assert.Equal(t, all, counts(v), "what was is left as it was")
		})
	}
}

// serviceMonitorCRD is of no policy kind.
var serviceMonitorCRD = crd{group: "monitoring.example.com", kind: "ServiceMonitor", plural: "servicemonitors", versions: []string{"v1"}}

func TestAViewInWhichNothingIsReadInAnotherWayIsTheVerySame(t *testing.T) {
	r, w := atWork(t)
	v, _ := r.store.View()
	profile := &policykind.Profile{}
	decoded, err := decodeProfile(paint(t, "paint", 1, "direct"))
	require.NoError(t, err)
	profile.PolicyProfile = decoded.PolicyProfile
	for name, c := range map[string]struct{ before, after store.Object }{
		"a definition is written as it was":         {definitionOf(colorCRD), definitionOf(colorCRD)},
		"a profile is written as it was":            {profile, profile},
		"a definition that is not known is deleted": {before: definitionOf(serviceMonitorCRD)},
		"one of Gateway API is written as it was":   {definitionOf(httpCRD), definitionOf(httpCRD)},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := w.Reread(t.Context(), v, c.before, c.after)
			require.NoError(t, err)
			assert.Same(t, v, got)
		})
	}
}

func TestAListThatFailsIsAnError(t *testing.T) {
	r, w := atWork(t)
	v, _ := r.store.View()
	relabelled := colorCRD
	relabelled.label = "direct"
	_, err := w.Reread(t.Context(), v, definitionOf(colorCRD), definitionOf(relabelled))
	require.ErrorContains(t, err, "list "+colorCRD.plural+"."+colorCRD.group+" to see how they would be read: ")
}
