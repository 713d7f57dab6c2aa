package cache

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

var grantCRD = crd{group: gatewayv1.GroupName, kind: gateway.KindReferenceGrant, plural: "referencegrants", versions: []string{"v1", "v1beta1"}}

// edited returns an edited copy of a crd.
func edited(c crd, edit func(*crd)) crd {
	edit(&c)
	return c
}

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

// older serves only the versions after the first.
func older(c *crd) { c.versions = c.versions[1:] }

func TestObjectsAreKeptUntilRelisted(t *testing.T) {
	direct := func(c *crd) { c.label = "direct" }
	unlabelled := func(c *crd) { c.label = "" }
	put := func(c crd) func(*testRegistry) {
		return func(r *testRegistry) { r.put(snapshot.ParseDefinition(c.obj())) }
	}
	forget := func(c crd) func(*testRegistry) {
		return func(r *testRegistry) { r.forget(c.obj().Name) }
	}
	profiled := func(edit func(profileTarget)) func(*testRegistry) {
		return func(r *testRegistry) { edit(profileTarget{r.registry, r.watched[profileCRD.obj().Name]}) }
	}
	grants := gateway.KindOf(gateway.KindReferenceGrant)
	paints := api.PolicyKind{Group: paintCRD.group, Kind: paintCRD.kind}
	for name, c := range map[string]struct {
		kind  api.PolicyKind
		edits []func(*testRegistry)
		stays bool
	}{
		"the label says another class":   {colorRef, []func(*testRegistry){put(edited(colorCRD, direct))}, true},
		"another version is stored":      {colorRef, []func(*testRegistry){put(edited(colorCRD, func(c *crd) { c.versions = []string{"v2", "v1"} }))}, true},
		"the scope is another":           {colorRef, []func(*testRegistry){put(edited(colorCRD, func(c *crd) { c.clusterScoped = true }))}, true},
		"the schema has one field more":  {colorRef, []func(*testRegistry){put(edited(colorCRD, func(c *crd) { c.specFields = []string{"colors"} }))}, true},
		"the definition is edited twice": {colorRef, []func(*testRegistry){put(edited(colorCRD, direct)), put(colorCRD)}, true},
		"its profile is edited": {paints, []func(*testRegistry){profiled(func(p profileTarget) {
			d, err := decodeProfile(paint(t, "paint", 2, "inherited"))
			require.NoError(t, err)
			p.put(d)
		})}, true},
		"its profile is deleted, and it has no label": {paints, []func(*testRegistry){profiled(func(p profileTarget) { p.remove(api.Ref{Group: api.Group, Kind: api.KindPolicyProfile, Name: "paint"}) })}, false},
		"a kind of Gateway API has another version":   {grants, []func(*testRegistry){put(edited(grantCRD, older))}, true},

		"the definition is deleted":                            {colorRef, []func(*testRegistry){forget(colorCRD)}, false},
		"the definition is deleted while it is read again":     {colorRef, []func(*testRegistry){put(edited(colorCRD, direct)), forget(colorCRD)}, false},
		"it is no policy kind any more":                        {colorRef, []func(*testRegistry){put(edited(colorCRD, unlabelled))}, false},
		"it is no policy kind any more while it is read again": {colorRef, []func(*testRegistry){put(edited(colorCRD, direct)), put(edited(colorCRD, unlabelled))}, false},
		"no version is served any more": {colorRef, []func(*testRegistry){
			put(edited(colorCRD, func(c *crd) { c.versions, c.unserved = nil, c.versions })),
		}, false},
		"a kind of Gateway API is deleted while it is read again": {grants, []func(*testRegistry){put(edited(grantCRD, older)), forget(grantCRD)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := newWatcherFixture(t)
			r.put(snapshot.ParseDefinition(grantCRD.obj()))
			r.list(grantCRD.obj().Name, &gatewayv1.ReferenceGrant{})
			was, _ := r.store.View()
			require.Equal(t, 1, was.Count(c.kind))
			kind, old := was.Kind(c.kind), r.of(c.kind)
			for _, edit := range c.edits {
				edit(r)
			}
			require.NoError(t, old.store.Replace(nil, "2"), "what arrives late is ignored")
			v, _ := r.store.View()
			assert.True(t, r.kindsWereChanged())
			assert.NotSame(t, old, r.of(c.kind))
			if !c.stays {
				assert.Zero(t, v.Count(c.kind))
				assert.Nil(t, v.Kind(c.kind))
				assert.False(t, r.store.Pending(c.kind))
				return
			}
			assert.Equal(t, 1, v.Count(c.kind))
			assert.Same(t, kind, v.Kind(c.kind), "with the previous configuration")
			r.list(r.of(c.kind).Name)
			v, _ = r.store.View()
			assert.Zero(t, v.Count(c.kind), "objects deleted in the meantime are removed")
			if kind != nil {
				assert.Same(t, r.kinds.Of(c.kind), v.Kind(c.kind))
			}
		})
	}
}

// of returns how a kind is read, nil if it is not.
func (r *testRegistry) of(kind api.PolicyKind) *watchedKind {
	for _, k := range r.watched {
		if k.Kind == kind {
			return k
		}
	}
	return nil
}

func TestGatewayKindRestartedBeforeListIsAwaited(t *testing.T) {
	r := newTestRegistry(t)
	r.replace(r.definitionsOf(grantCRD))
	r.put(snapshot.ParseDefinition(edited(grantCRD, older).obj()))
	assert.Contains(t, r.store.Waiting(), "referencegrants")
	r.list(grantCRD.obj().Name)
	assert.NotContains(t, r.store.Waiting(), "referencegrants")
}

func TestKindThatCannotBeRelistedIsStaleAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := newWatcherFixture(t)
		w.definitions = &reflector{health: newHealthTracker(sourceDefinitions)}
		for _, k := range r.watched {
			k.health.watchOpened(false)
		}
		look := func() { w.checkSources(time.Now()) }
		again := func(class string) {
			r.put(snapshot.ParseDefinition(edited(colorCRD, func(c *crd) { c.label = class }).obj()))
			r.watched[colorCRD.obj().Name].health.recordFailure(errUnconverted)
		}
		again("direct")
		time.Sleep(StaleAfter - time.Second)
		again("inherited") // an edit does not reset its age
		look()
		require.NoError(t, w.CheckFresh(colorRef))
		time.Sleep(2 * time.Second)
		look()
		require.ErrorIs(t, w.CheckFresh(colorRef), errUnconverted)
		require.NoError(t, w.CheckFresh(api.PolicyKind{Group: paintCRD.group, Kind: paintCRD.kind}))
		require.NoError(t, w.CheckFresh(route))
		require.ErrorContains(t, w.UnreadableKindsError(), "colorpolicies.policies.example.com: watch disconnected for 11s")
		v, _ := r.store.View()
		assert.Equal(t, 1, v.Count(colorRef), "its policies stay in force")

		r.watched[colorCRD.obj().Name].health.watchOpened(true)
		r.list(colorCRD.obj().Name)
		look()
		assert.NoError(t, w.CheckFresh(colorRef))
	})
}

func TestKindForbiddenOnRelistStaysServed(t *testing.T) {
	r, _ := newWatcherFixture(t)
	r.put(snapshot.ParseDefinition(edited(colorCRD, func(c *crd) { c.label = "direct" }).obj()))
	r.watched[colorCRD.obj().Name].onForbidden(errors.New("no"))
	assert.Contains(t, r.servedResources(), colorCRD.plural, "its policies are still in force")
}
