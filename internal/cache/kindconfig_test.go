package cache

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// newWatcherFixture has read a cluster with an HTTPRoute, a ColorPolicy, a constraint
// and a profile of another kind.
func newWatcherFixture(t *testing.T) (*testRegistry, *Watcher) {
	t.Helper()
	r := newTestRegistry(t)
	r.replace(r.definitionsOf(profileCRD, constraintCRD, colorCRD, httpCRD, paintCRD))
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

func TestRereadOfUnlistedKind(t *testing.T) {
	r := newTestRegistry(t)
	r.replace(r.definitionsOf(colorCRD, httpCRD))
	v, _ := r.store.View()
	require.Equal(t, []string{colorCRD.kind}, r.unlisted())
	got, err := v.WithKindChange(definitionOf(colorCRD), definitionOf(edited(colorCRD, func(c *crd) { c.versions = []string{"v2", "v1"} })))
	require.NoError(t, err)
	assert.Equal(t, v.Unlisted(), got.Unlisted(), "it is read as before")
	for name, after := range map[string]snapshot.Object{
		"its definition is deleted":           nil,
		"its definition is of no policy kind": definitionOf(edited(colorCRD, func(c *crd) { c.label = "" })),
	} {
		got, err := v.WithKindChange(definitionOf(colorCRD), after)
		require.NoError(t, err, name)
		assert.Empty(t, got.Unlisted(), name)
	}
}

// counts returns the number of objects by kind.
func counts(v *snapshot.View) map[string]int {
	out := map[string]int{}
	paintRef := api.PolicyKind{Group: paintCRD.group, Kind: paintCRD.kind}
	for _, k := range []api.PolicyKind{colorRef, paintRef, gateway.KindOf(gateway.KindHTTPRoute), {Group: api.Group, Kind: api.KindPolicyConstraint}} {
		if n := v.Count(k); n > 0 {
			out[k.Kind] = n
		}
	}
	return out
}

func TestRereadWithoutDefinition(t *testing.T) {
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
		"of a policy kind":                           {before: definitionOf(colorCRD), want: without(colorCRD.kind)},
		"of a policy kind that is not served":        {definitionOf(colorCRD), definitionOf(unserved(colorCRD)), without(colorCRD.kind)},
		"of a kind of Gateway API":                   {before: definitionOf(httpCRD), want: without("HTTPRoute")},
		"of constraints":                             {before: definitionOf(constraintCRD), want: without("PolicyConstraint")},
		"of the profiles, which removes their kinds": {before: definitionOf(profileCRD), want: without(paintCRD.kind)},
		"of a kind that is not read":                 {before: definitionOf(serviceMonitorCRD), want: all},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := newWatcherFixture(t)
			v, _ := r.store.View()
			require.Equal(t, all, counts(v))
			var after snapshot.Object
			if c.after != nil {
				after = c.after
			}
			got, err := v.WithKindChange(c.before, after)
			require.NoError(t, err)
			assert.Equal(t, c.want, counts(got))
			assert.Equal(t, all, counts(v), "the original view is not changed")
		})
	}
}

// serviceMonitorCRD defines a kind that is no policy kind.
var serviceMonitorCRD = crd{group: "monitoring.example.com", kind: "ServiceMonitor", plural: "servicemonitors", versions: []string{"v1"}}

func TestRereadReturnsSameView(t *testing.T) {
	r, _ := newWatcherFixture(t)
	v, _ := r.store.View()
	profile := profileIn(t, paint(t, "paint", 1, "direct"))
	for name, c := range map[string]struct{ before, after snapshot.Object }{
		"a definition is written as it was":         {definitionOf(colorCRD), definitionOf(colorCRD)},
		"a profile is written as it was":            {profile, profile},
		"a definition that is not known is deleted": {before: definitionOf(serviceMonitorCRD)},
		"one of Gateway API is written as it was":   {definitionOf(httpCRD), definitionOf(httpCRD)},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := v.WithKindChange(c.before, c.after)
			require.NoError(t, err)
			assert.Equal(t, v.Kinds(), got.Kinds())
			assert.Empty(t, got.Unlisted())
		})
	}
}

// going marks an object as terminating, or as one that is deleted with its owner.
func going(u *unstructured.Unstructured, owned bool) *unstructured.Unstructured {
	if owned {
		u.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "u"}})
	} else {
		u.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(9, 0)})
	}
	return u
}

func profileIn(t *testing.T, u *unstructured.Unstructured) *policykind.Profile {
	t.Helper()
	p, err := decodeProfile(u)
	require.NoError(t, err)
	return p
}

// A profile whose final deletion is not evaluated replaces no other one.
func TestRereadIgnoresTerminatingProfiles(t *testing.T) {
	of := func(name string, created int64) *unstructured.Unstructured { return paint(t, name, created, "direct") }
	for name, c := range map[string]struct {
		others  []*unstructured.Unstructured // beside the profile, of time 5
		deleted string
		read    bool // the kind, as before
	}{
		"a younger one that stays":                            {others: []*unstructured.Unstructured{of("too", 6)}, read: true},
		"a younger one with an owner":                         {others: []*unstructured.Unstructured{going(of("too", 6), true)}},
		"a younger one that waits for a finalizer":            {others: []*unstructured.Unstructured{going(of("too", 6), false)}},
		"an older one with an owner, which is in force":       {others: []*unstructured.Unstructured{going(of("too", 4), true)}},
		"one that is going, and one that stays":               {others: []*unstructured.Unstructured{going(of("too", 6), true), of("third", 7)}, read: true},
		"the one with an owner is deleted, and the other not": {others: []*unstructured.Unstructured{going(of("too", 4), true)}, deleted: "too", read: true},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := newWatcherFixture(t)
			all := append([]*unstructured.Unstructured{of("paint", 5)}, c.others...)
			r.list(profileCRD.obj().Name, slices.Collect(func(yield func(any) bool) {
				for _, u := range all {
					if !yield(u) {
						return
					}
				}
			})...)
			r.list(paintCRD.obj().Name, policy(paintCRD.kind, "app", "p"))
			v, _ := r.store.View()
			require.Equal(t, 1, counts(v)[paintCRD.kind])
			i := slices.IndexFunc(all, func(u *unstructured.Unstructured) bool { return u.GetName() == cmp.Or(c.deleted, "paint") })
			got, err := v.WithKindChange(profileIn(t, all[i]), nil)
			require.NoError(t, err)
			if c.read {
				assert.Equal(t, v.Kinds(), got.Kinds())
				assert.Empty(t, got.Unlisted())
				return
			}
			assert.Zero(t, counts(got)[paintCRD.kind])
		})
	}
}

// Pending changes are applied in order: of two equivalent profiles or definitions, one
// may be deleted, but then not the other.
func TestRereadWithInflightChanges(t *testing.T) {
	r, _ := newWatcherFixture(t)
	one, two := paint(t, "paint", 5, "direct"), paint(t, "too", 6, "direct")
	r.list(profileCRD.obj().Name, one, two)
	r.list(paintCRD.obj().Name, policy(paintCRD.kind, "app", "p"))
	v, _ := r.store.View()
	for name, c := range map[string]struct {
		first, then snapshot.Object // the first write, from and to
		second      snapshot.Object // is deleted
	}{
		"both profiles":                   {profileIn(t, two), nil, profileIn(t, one)},
		"the definition of the profiles":  {definitionOf(profileCRD), nil, profileIn(t, two)},
		"a profile of another kind, both": {profileIn(t, two), profileIn(t, paintOf(two, "Other")), profileIn(t, one)},
	} {
		t.Run(name, func(t *testing.T) {
			first, err := v.WithKindChange(c.first, c.then)
			require.NoError(t, err)
			got, err := first.WithKindChange(c.second, nil)
			require.NoError(t, err)
			assert.Zero(t, counts(got)[paintCRD.kind])
		})
	}
}

// paintOf is a profile for another kind.
func paintOf(u *unstructured.Unstructured, kind string) *unstructured.Unstructured {
	out := u.DeepCopy()
	_ = unstructured.SetNestedField(out.Object, kind, "spec", "kind")
	return out
}
