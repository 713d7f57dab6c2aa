package snapshot_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// A policy with the uid and resourceVersion of the one in the view is not decoded again,
// unless its kind has changed.
func TestDecodeStoredPolicyByState(t *testing.T) {
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

// Unknown states are never equal.
func TestDecodeStoredPolicyWithoutState(t *testing.T) {
	k := paint(t, "Paint")
	first := policy(t, k, "p")
	require.False(t, first.State.Known())
	o, err := (&snapshot.View{}).With(snapshot.Put(first)).DecodeStored(first.Ref(), k, []byte(`{"metadata": {"namespace": "app", "name": "p"}, "spec": {}}`), 0)
	require.NoError(t, err)
	assert.NotSame(t, first, o)
}

func TestDecode(t *testing.T) {
	gw := func(kind string) api.PolicyKind { return api.PolicyKind{Group: api.GatewayGroup, Kind: kind} }
	for kind, want := range map[api.PolicyKind]string{
		{Kind: "Namespace"}:       "Namespace x",
		gw("GatewayClass"):        "GatewayClass x",
		gw("Gateway"):             "Gateway ns/x",
		gw("ListenerSet"):         "ListenerSet ns/x",
		gw("ReferenceGrant"):      "ReferenceGrant ns/x",
		gw("HTTPRoute"):           "HTTPRoute ns/x",
		gw("GRPCRoute"):           "GRPCRoute ns/x",
		gw("TLSRoute"):            "TLSRoute ns/x",
		gw("TCPRoute"):            "TCPRoute ns/x",
		gw("UDPRoute"):            "UDPRoute ns/x",
		{Kind: "Service"}:         "Service ns/x",
		policykind.KindProfile:    "PolicyProfile x",
		policykind.KindDefinition: "CustomResourceDefinition x",
	} {
		assert.Equal(t, want, decode(t, kind, "metadata: {namespace: ns, name: x}").Ref().String())
	}
	for _, kind := range []api.PolicyKind{
		{Kind: "Gateway"}, {Group: "example.com", Kind: "Gateway"}, {Group: api.GatewayGroup, Kind: "Namespace"}, gw("BackendTLSPolicy"), {Group: "apps", Kind: "Service"}, paintKind,
	} {
		_, err := snapshot.Decode(kind, nil, []byte(`{}`), 0)
		require.ErrorIs(t, err, snapshot.ErrKind)
		require.EqualError(t, err, kind.String()+": not a kind that effective policies depend on")
	}
}

func TestDecodeErrors(t *testing.T) {
	tests := map[string]struct {
		kind api.PolicyKind
		data string
	}{
		"no JSON":       {routeKind, "{"},
		"a wrong type":  {gatewayKind, `{"spec": {"listeners": "x"}}`},
		"a list":        {routeKind, "[]"},
		"a policy that": {paintKind, "5"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var k *policykind.Kind
			if test.kind == paintKind {
				k = paint(t, "Paint")
			}
			_, err := snapshot.Decode(test.kind, k, []byte(test.data), 0)
			require.ErrorContains(t, err, "decode "+test.kind.String()+": ")
			assert.NotErrorIs(t, err, snapshot.ErrKind)
		})
	}
	t.Run("a policy that cannot be read is Invalid, and no error", func(t *testing.T) {
		o, err := snapshot.Decode(paintKind, paint(t, "Paint"), []byte(`{"metadata": {"name": "p"}}`), 0)
		require.NoError(t, err)
		require.Error(t, o.(*policykind.Policy).Invalid)
	})
	t.Run("names are read in their very case, whole numbers as such", func(t *testing.T) {
		o, err := snapshot.Decode(paintKind, paint(t, "Paint"), []byte(`{"Metadata": {"name": "p"}, "spec": {"a": 9007199254740993, "b": 1.0}}`), 0)
		require.NoError(t, err)
		p := o.(*policykind.Policy)
		assert.Empty(t, p.Name)
		assert.Equal(t, int64(9007199254740993), p.Blocks[0].Rules[0].Value)
	})
	t.Run("null is an empty policy", func(t *testing.T) {
		o, err := snapshot.Decode(paintKind, paint(t, "Paint"), []byte(`null`), 0)
		require.NoError(t, err)
		require.Error(t, o.(*policykind.Policy).Invalid)
	})
}
