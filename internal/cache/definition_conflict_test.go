package cache

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// writtenAt is a definition with a creation time.
func writtenAt(c crd, seconds int64) *policykind.Definition {
	d := definitionOf(c)
	d.CreationTimestamp = metav1.NewTime(time.Unix(seconds, 0))
	return d
}

// anotherColor defines the kind of colorCRD, by a name that comes first.
var anotherColor = edited(colorCRD, func(c *crd) { c.plural = "aaas" })

func pending(c *crd) { c.pending = true }

// withTwo is a registry with two definitions of a kind, of which the first one is
// older.
func withTwo(t *testing.T, other crd) (*testRegistry, *Watcher) {
	t.Helper()
	r := newTestRegistry(t)
	r.replace([]*snapshot.Definition{
		snapshot.ParseDefinition(&writtenAt(colorCRD, 1).CustomResourceDefinition), snapshot.ParseDefinition(&writtenAt(other, 2).CustomResourceDefinition),
	})
	r.list(colorCRD.obj().Name, policy(colorCRD.kind, "app", "p"))
	return r, &Watcher{clients: r.clients, registry: r.registry}
}

func TestOlderServedDefinitionIsActive(t *testing.T) {
	for name, other := range map[string]crd{
		"the other one is not served":      edited(anotherColor, pending),
		"the other one is served, as well": anotherColor,
	} {
		t.Run(name, func(t *testing.T) {
			r, w := withTwo(t, other)
			assert.Equal(t, []string{"colorpolicies"}, r.servedResources())
			v, _ := r.store.View()
			assert.Equal(t, 1, v.Count(colorRef), "policies are kept")
			for range 20 {
				_, plural := w.Resource(colorRef)
				assert.Equal(t, "colorpolicies", plural, "permissions refer to its resource")
				assert.Equal(t, colorCRD.obj().Name, r.kinds.DefinitionOf(colorRef).Name, "its schema is used")
			}
		})
	}
}

func TestSecondDefinitionIsActiveWhenFirstIsNotServed(t *testing.T) {
	r, w := withTwo(t, anotherColor)
	r.put(snapshot.ParseDefinition(&writtenAt(edited(colorCRD, pending), 1).CustomResourceDefinition))
	r.list(anotherColor.obj().Name)
	assert.Equal(t, []string{"aaas"}, r.servedResources())
	_, plural := w.Resource(colorRef)
	assert.Equal(t, "aaas", plural)
	v, _ := r.store.View()
	assert.Zero(t, v.Count(colorRef))
}

func TestOlderDefinitionTakesPrecedence(t *testing.T) {
	r, _ := withTwo(t, anotherColor)
	r.put(snapshot.ParseDefinition(&writtenAt(anotherColor, 0).CustomResourceDefinition))
	assert.Equal(t, []string{"aaas"}, r.servedResources())
	require.Len(t, r.allProblems(), 1)
	assert.Equal(t, colorCRD.obj().Name, r.allProblems()[0].Resource)
}

func TestServedDuplicateDefinitionIsAProblem(t *testing.T) {
	r, _ := withTwo(t, anotherColor)
	assert.Equal(t, []Problem{{anotherColor.obj().Name, &policykind.DefinedError{Kind: colorRef, By: colorCRD.obj().Name}}}, r.allProblems())
	r, _ = withTwo(t, edited(anotherColor, pending))
	assert.Empty(t, r.allProblems())
}

func TestReservedKindsAreNotRead(t *testing.T) {
	for _, c := range []crd{httpCRD, profileCRD, constraintCRD} {
		r := newTestRegistry(t)
		other := edited(c, func(c *crd) { c.plural, c.label = "aaas", "inherited" })
		r.replace(r.definitionsOf(c, profileCRD, other))
		r.list(profileCRD.obj().Name)
		assert.NotContains(t, r.watched, other.obj().Name)
		assert.Contains(t, r.watched, c.obj().Name)
		assert.Equal(t, []Problem{{other.obj().Name, &policykind.DefinedError{Kind: snapshot.ParseDefinition(c.obj()).Kind, By: c.obj().Name}}}, r.allProblems())
	}
}

func TestRereadRejectsDuplicateDefinition(t *testing.T) {
	pendingToo := edited(anotherColor, pending)
	ofNoKind := edited(anotherColor, func(c *crd) { c.kind, c.label = "Color", "" })
	for name, c := range map[string]struct {
		before, after *policykind.Definition
		by            string // empty: it may be written
	}{
		"created":                        {after: definitionOf(pendingToo), by: colorCRD.obj().Name},
		"given the kind":                 {definitionOf(ofNoKind), definitionOf(anotherColor), colorCRD.obj().Name},
		"served by its status":           {definitionOf(pendingToo), definitionOf(anotherColor), colorCRD.obj().Name},
		"of Gateway API":                 {after: definitionOf(edited(httpCRD, func(c *crd) { c.plural = "aaas" })), by: httpCRD.obj().Name},
		"edited, and not served":         {definitionOf(pendingToo), definitionOf(pendingToo), ""},
		"edited, and served as before":   {definitionOf(anotherColor), definitionOf(anotherColor), ""},
		"not served any more":            {definitionOf(anotherColor), definitionOf(pendingToo), ""},
		"deleted":                        {before: definitionOf(anotherColor)},
		"created, of a kind of no other": {after: definitionOf(ofNoKind)},
		"the first one, edited":          {writtenAt(colorCRD, 1), writtenAt(colorCRD, 1), ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := newWatcherFixture(t)
			r.put(snapshot.ParseDefinition(&writtenAt(colorCRD, 1).CustomResourceDefinition))
			v, _ := r.store.View()
			var before, after snapshot.Object
			if c.before != nil {
				before = c.before
			}
			if c.after != nil {
				after = c.after
			}
			got, err := v.WithKindChange(before, after)
			if c.by == "" {
				require.NoError(t, err)
				assert.Equal(t, counts(v), counts(got))
				return
			}
			var second *policykind.DefinedError
			require.ErrorAs(t, err, &second)
			assert.Equal(t, c.by, second.By)
		})
	}
}

// Policies of one definition never replace those of the other.
func TestDeletedDuplicateKeepsPolicies(t *testing.T) {
	r, _ := withTwo(t, anotherColor)
	v, _ := r.store.View()
	got, err := v.WithKindChange(writtenAt(colorCRD, 1), nil)
	require.NoError(t, err)
	require.Len(t, got.Unlisted(), 1)
	assert.Equal(t, colorRef, got.Unlisted()[0].Ref())
}

func TestDuplicateDefinitionsAreListedOnce(t *testing.T) {
	s := &discovery{kinds: snapshot.NewKinds().With(snapshot.Put(writtenAt(anotherColor, 2)), snapshot.Put(writtenAt(colorCRD, 1)))}
	var err error
	s.clients, err = newClients(&rest.Config{Host: "http://127.0.0.1:1"}, 0)
	require.NoError(t, err)
	s.addListings()
	require.Len(t, s.listings, 1+len(coreKinds))
	assert.Equal(t, colorCRD.obj().Name, s.listings[len(coreKinds)].resource)
	assert.Contains(t, s.problems, Problem{anotherColor.obj().Name, &policykind.DefinedError{Kind: colorRef, By: colorCRD.obj().Name}})
	assert.Len(t, s.kinds.InForce(), len(policykind.BuiltinKinds())+1, "the label kind is listed once")
}
