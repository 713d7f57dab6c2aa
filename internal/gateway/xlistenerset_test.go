package gateway

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	api "overrule.dev/overrule/api/v1alpha1"
)

// A ListenerSet and an XListenerSet of one name in one namespace are two objects.
func TestXListenerSetIsNotListenerSet(t *testing.T) {
	object := &gatewayv1.ListenerSet{ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: "s"}}
	object.Spec.ParentRef.Name = "g"
	object.Spec.Listeners = []gatewayv1.ListenerEntry{{Name: "http", Port: 80, Protocol: gatewayv1.HTTPProtocolType}}
	set, x := FromListenerSet(object), FromXListenerSet(object)
	assert.Equal(t, api.Ref{Group: api.GatewayXGroup, Kind: KindXListenerSet, Namespace: "app", Name: "s"}, x.Ref())
	assert.NotEqual(t, set.Ref(), x.Ref())

	g := &Gateway{Namespace: "app", Name: "g", Sets: NamespaceRule{Same: true}}
	ofSet, ofX := SetListeners(g, set, labels.Set{})[0], SetListeners(g, x, labels.Set{})[0]
	r, err := ReadRoute(KindHTTPRoute, []byte(`{"metadata":{"namespace":"app","name":"r"},"spec":{"parentRefs":[`+
		`{"group":"gateway.networking.x-k8s.io","kind":"XListenerSet","name":"s"},`+
		`{"kind":"XListenerSet","name":"s"},{"group":"gateway.networking.x-k8s.io","kind":"ListenerSet","name":"s"}]}}`), nil, Newest)
	assert.NoError(t, err)
	assert.True(t, ofX.Accepts(r, nil))
	assert.False(t, ofSet.Accepts(r, nil), "of which only the name is the same")
	assert.Equal(t, []api.Ref{
		{Group: api.GatewayGroup, Kind: KindXListenerSet, Namespace: "app", Name: "s"},
		{Group: api.GatewayXGroup, Kind: KindListenerSet, Namespace: "app", Name: "s"},
	}, r.Unread, "a kind is one of its group")

	a := Path{Gateway: g, Set: set, Listener: ofSet.Listener, Rule: -1}
	b := Path{Gateway: g, Set: x, Listener: ofX.Listener, Rule: -1}
	assert.NotEqual(t, a.ID(), b.ID())
	assert.False(t, a.SameButRule(&b))
	assert.Equal(t, api.PathElement{Kind: KindXListenerSet, Namespace: "app", Name: "s"}, b.Element(LevelListenerSet))
}
