package manifest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/messages"
)

func profile(name, kind, more string) string {
	return "apiVersion: overrule.dev/v1alpha1\nkind: PolicyProfile\nmetadata: {name: " + name + "}\n" +
		"spec: {group: example.com, kind: " + kind + ", class: inherited, targets: {fields: [targetRef]}" + more + "}\n"
}

var ownKind = api.PolicyKind{Group: "example.com", Kind: "Own"}

const own = "apiVersion: example.com/v1\nkind: Own\nmetadata: {name: a}\nspec: {targetRef: {kind: Gateway, group: gateway.networking.k8s.io, name: g}, size: 1}\n"

// A profile applies to all objects, before and after it.
func TestProfileOrderDoesNotMatter(t *testing.T) {
	for _, text := range []string{
		profile("p", "Own", "") + "---\n" + own,
		own + "---\n" + profile("p", "Own", ""),
		own + "---\n" + crd("Own", "direct", "Namespaced") + "---\n" + profile("p", "Own", ""),
	} {
		v, set, kinds, err := view(t, text)
		require.NoError(t, err)
		require.NotNil(t, kinds.Of(ownKind))
		assert.Equal(t, policykind.Cluster, kinds.Of(ownKind).Source)
		assert.Equal(t, api.Inherited, kinds.Of(ownKind).Class)
		assert.Equal(t, 1, v.Count(ownKind))
		assert.Zero(t, v.Count(policykind.KindProfile), "a profile takes no part")
		assert.Empty(t, set.Ignored(kinds))
		assert.NotNil(t, kinds.Profile("p"))
	}
}

// A PolicyProfile with the name of the one in effect on the cluster replaces it.
func TestClusterProfileTakesPrecedence(t *testing.T) {
	_, set, kinds, err := view(t, profile("first", "Own", ""))
	require.NoError(t, err)
	known := NewKinds(snapshot.KindsOf(kinds.Of(ownKind)))
	require.NotNil(t, known.Profile("first"))
	assert.Equal(t, kinds.Of(ownKind).PolicyProfileSpec, known.Profile("first").Spec)
	_, second, _, err := view(t, profile("second", "Own", ", sameTarget: none"))
	require.NoError(t, err)
	require.NoError(t, second.Define(known))
	assert.Same(t, kinds.Of(ownKind), known.Of(ownKind))
	require.Len(t, known.Rejected(), 1)
	assert.Contains(t, known.Rejected()[0].Message, "PolicyProfile first, ")
	messages.Golden(t, known.Rejected()[0].Message)
	known = NewKinds(snapshot.KindsOf(kinds.Of(ownKind)))
	require.NoError(t, set.Define(known))
	assert.Empty(t, known.Rejected(), "replaced")
	assert.Equal(t, "first", known.Of(ownKind).Name)
}

// A value of a wrong type is an error in routes of every kind, an unknown field is
// not.
func TestRouteTypesAreValidated(t *testing.T) {
	for _, kind := range []string{"HTTPRoute", "GRPCRoute", "TLSRoute", "TCPRoute", "UDPRoute"} {
		head := gatewayAPI + "kind: " + kind + "\nmetadata: {name: a}\n"
		_, _, _, err := view(t, head+"spec: {rules: [{backendRefs: [{name: b, port: high}]}]}\n")
		require.ErrorContains(t, err, "standard input:1 (document 1): "+kind+" a is invalid: ")
		require.ErrorContains(t, err, "port of type int32; correct the field")
		_, _, _, err = view(t, head+"spec: {extra: 1, rules: [{more: {}}]}\n")
		require.NoError(t, err, kind)
	}
}

func TestFromObjects(t *testing.T) {
	set, err := FromObjects("the cluster", []map[string]any{
		{"apiVersion": "v1", "kind": "A", "metadata": map[string]any{"name": "a"}},
		{"apiVersion": "v1"},
	})
	require.ErrorContains(t, err, "the cluster: kind is required")
	assert.Equal(t, []string{"a"}, names(set))
}

// A directory may be given as a symbolic link. Files are read once.
func TestReadSymbolicLinks(t *testing.T) {
	dir := folder(t, map[string]string{"a.yaml": object("A", "a"), "sub/b.yaml": object("A", "b"), ".hidden.yaml": "nor: this"})
	link := filepath.Join(t.TempDir(), ".link")
	require.NoError(t, os.Symlink(dir, link))
	set, err := Read([]string{link}, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b"}, names(set))
	assert.Equal(t, filepath.Join(link, "sub", "b.yaml"), set.Objects[1].At.File, "as it was named")
	set, err = Read([]string{dir, link, filepath.Join(link, "a.yaml")}, nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"a", "b"}, names(set))
	broken := filepath.Join(t.TempDir(), "broken")
	require.NoError(t, os.Symlink(filepath.Join(dir, "missing"), broken))
	_, err = Read([]string{broken}, nil)
	require.ErrorContains(t, err, "check the path")
	_, err = listFiles(filepath.Join(dir, "a.yaml", "x"))
	require.ErrorContains(t, err, "stat ")
}
