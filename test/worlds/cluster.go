package worlds

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// Cluster is a store with its objects.
type Cluster struct {
	Store *snapshot.Store
	// Size is that of a Mix.
	Size Size
	// Auth and Limits are the policy kinds of a Mix, with their built-in profiles.
	Auth, Limits *policykind.Kind

	kinds map[api.PolicyKind]*policykind.Kind
}

// Empty returns a cluster whose store has every built-in policy kind and no objects.
// The store is ready without a sync.
func Empty(tb testing.TB) *Cluster {
	tb.Helper()
	c := &Cluster{Store: snapshot.New(), kinds: make(map[api.PolicyKind]*policykind.Kind)}
	kinds := policykind.BuiltinKinds()
	for _, k := range kinds {
		c.addKind(k)
	}
	c.Auth, c.Limits = c.kinds[authKind], c.kinds[limitsKind]
	return c
}

func (c *Cluster) addKind(k *policykind.Kind) {
	c.kinds[k.Ref()] = k
	c.Store.AddKind(k)
	c.Store.KindListed(k.Ref())
}

// Mix returns a cluster with the objects of a size.
func Mix(tb testing.TB, size Size) *Cluster {
	tb.Helper()
	c := Empty(tb)
	c.Size = size
	var changes []snapshot.Change
	for o := range Objects(size) {
		changes = append(changes, snapshot.Put(c.Decode(tb, o)))
	}
	c.Store.Apply(changes...)
	return c
}

// Put puts objects into the store in one snapshot.
func (c *Cluster) Put(tb testing.TB, objects ...Object) {
	tb.Helper()
	changes := make([]snapshot.Change, len(objects))
	for i, o := range objects {
		changes[i] = snapshot.Put(c.Decode(tb, o))
	}
	c.Store.Apply(changes...)
}

// Decode decodes an object for the store; policies are packed as watched ones are.
func (c *Cluster) Decode(tb testing.TB, o Object) snapshot.Object {
	tb.Helper()
	data, err := json.Marshal(o)
	require.NoError(tb, err)
	read, err := c.Read(KindOf(o), data)
	require.NoError(tb, err)
	return read
}

// Read is Decode of an object in JSON.
func (c *Cluster) Read(kind api.PolicyKind, data []byte) (snapshot.Object, error) {
	o, err := snapshot.Decode(kind, c.kinds[kind], data, 0)
	if p, ok := o.(*policykind.Policy); ok {
		return p.Pack(), nil
	}
	return o, err
}
