package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/labels"

	"overrule.dev/overrule/internal/gateway"
)

// There is a reason if and only if no listener accepts the route.
func TestRejectReasonAgreesWithAccepts(t *testing.T) {
	var listeners []gateway.Listener
	for _, rule := range []gateway.NamespaceRule{{All: true}, {Same: true}, {Selector: labels.SelectorFromSet(labels.Set{"a": "b"})}, {}} {
		for _, host := range []string{"", "a.example.com", "*.example.com"} {
			for i, kinds := range [][]string{{"HTTPRoute"}, {"TCPRoute"}} {
				listeners = append(listeners, gateway.Listener{Name: []string{"x", "y"}[i], Port: 80, Hostname: host, Namespaces: rule, Kinds: kinds})
			}
		}
	}
	taken := 0
	for _, l := range listeners {
		g := &gateway.Gateway{Namespace: "infra", Name: "g", Listeners: []gateway.Listener{l}}
		for _, p := range []gateway.Parent{{}, {Section: "x"}, {Section: "none"}, {Port: 80}, {Section: "y", Port: 81}} {
			p.Kind, p.Namespace, p.Name = "Gateway", "infra", "g"
			for _, namespace := range []string{"infra", "app"} {
				for _, hosts := range [][]string{nil, {"a.example.com"}, {"b.example.com", "c.org"}, {"c.org"}} {
					for _, set := range []labels.Set{nil, {"a": "b"}} {
						r := &gateway.Route{Kind: "HTTPRoute", Namespace: namespace, Name: "r", Hostnames: hosts, Parents: []gateway.Parent{p}}
						takes := gateway.OwnListeners(g)[0].Accepts(r, set)
						assert.Equal(t, takes, gateway.RejectReason(r, p, g.Listeners, set) == "", "%+v %+v %+v %v", l, p, r.Hostnames, set)
						if takes {
							taken++
						}
					}
				}
			}
		}
	}
	assert.Greater(t, taken, 50)
}
