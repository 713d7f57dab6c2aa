package snapshot_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// A policy of the uid and version that the view has is that one; any other state
// is read, and so is one whose kind is read in another way by now.
func TestAStoredPolicyIsKnownByItsState(t *testing.T) {
	k := paint(t, "Paint")
	const text = `{"metadata": {"namespace": "app", "name": "p", "uid": "u", "resourceVersion": "7"}, "spec": {"a": 1}}`
	decode := func(v *snapshot.View, k *policykind.Kind, text string) *policykind.Policy {
		o, err := v.DecodeStored(policy(t, k, "p").Ref(), k, []byte(text), 0)
		require.NoError(t, err)
		return o.(*policykind.Policy)
	}
	first := decode(&snapshot.View{}, k, text)
	v := (&snapshot.View{}).With(snapshot.Put(first))

	assert.Same(t, first, decode(v, k, text), "it is not read again")
	assert.NotSame(t, first, decode(v, paint(t, "Paint"), text))
	for what, other := range map[string][2]string{
		"another version": {`"7"`, `"8"`}, "another object": {`"u"`, `"w"`},
		"no version": {`"resourceVersion": "7"`, `"generation": 1`}, "no uid": {`"uid": "u", `, ``},
	} {
		got := decode(v, k, strings.Replace(text, other[0], other[1], 1))
		assert.NotSame(t, first, got, what)
	}
	_, err := v.DecodeStored(first.Ref(), k, []byte(`{"metadata": 1`), 0)
	require.Error(t, err)
}

// States that nobody knows are not the same.
func TestAPolicyWithoutAStateIsReadEachTime(t *testing.T) {
	k := paint(t, "Paint")
	first := policy(t, k, "p")
	require.False(t, first.State.Known())
	o, err := (&snapshot.View{}).With(snapshot.Put(first)).DecodeStored(first.Ref(), k, []byte(`{"metadata": {"namespace": "app", "name": "p"}, "spec": {}}`), 0)
	require.NoError(t, err)
	assert.NotSame(t, first, o)
}
