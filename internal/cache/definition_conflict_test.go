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
	d := &policykind.Definition{CustomResourceDefinition: *c.obj()}
	d.CreationTimestamp = metav1.NewTime(time.Unix(seconds, 0))
	return d
}

// anotherColor defines the kind of colorCRD, by a name that comes first.
var anotherColor = edited(colorCRD, func(c *crd) { c.plural = "aaas" })

func pending(c *crd) { c.pending = true }

func TestSecondDefinitionIsActiveWhenFirstIsNotServed(t *testing.T) {
	r := newTestRegistry(t)
	r.replace([]snapshot.Object{
		snapshot.ParseDefinition(&writtenAt(colorCRD, 1).CustomResourceDefinition), snapshot.ParseDefinition(&writtenAt(anotherColor, 2).CustomResourceDefinition),
	})
	r.list(colorCRD.obj().Name, policy(colorCRD.kind, "app", "p"))
	w := &Watcher{clients: r.clients, registry: r.registry}
	assert.Equal(t, []string{"colorpolicies"}, r.servedResources())
	v, _ := r.store.View()
	assert.Equal(t, 1, v.Count(colorRef), "policies are kept")
	assert.Equal(t, []Problem{{anotherColor.obj().Name, &policykind.DefinedError{Kind: colorRef, By: colorCRD.obj().Name}}}, r.Problems())
	r.put(snapshot.ParseDefinition(&writtenAt(edited(colorCRD, pending), 1).CustomResourceDefinition))
	r.list(anotherColor.obj().Name)
	assert.Equal(t, []string{"aaas"}, r.servedResources())
	_, plural := w.Resource(colorRef)
	assert.Equal(t, "aaas", plural)
	v, _ = r.store.View()
	assert.Zero(t, v.Count(colorRef))
	assert.Empty(t, r.Problems())
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
