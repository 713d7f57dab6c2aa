package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/test/tables"
)

// through is a path of a route with hostnames on a listener with a hostname; the
// names are YAML.
func through(t testing.TB, listener, route string) gateway.Path {
	t.Helper()
	p := gateway.Path{Rule: -1, Listener: &gateway.Listener{Name: "http", Hostname: listener}}
	if route != "" {
		p.Route = routing(t, "app", "{hostnames: "+route+"}")
	}
	return p
}

// Two paths share hosts if requests for one name can reach both.
func TestShareHosts(t *testing.T) {
	tests := tables.Read[map[string]struct {
		Listener, Route           string
		OtherListener, OtherRoute string
		Want                      bool
	}](t, "testdata/tables/share-hosts.yaml")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p, q := through(t, test.Listener, test.Route), through(t, test.OtherListener, test.OtherRoute)
			assert.Equal(t, test.Want, gateway.HostsIntersect(p.Hosts(), q.Hosts()))
			assert.Equal(t, test.Want, gateway.HostsIntersect(q.Hosts(), p.Hosts()), "the other way round")
		})
	}
	t.Run("a path without a listener takes any", func(t *testing.T) {
		mesh := gateway.Path{Rule: -1, Service: &gateway.Service{Namespace: "app", Name: "s"}}
		assert.True(t, gateway.HostsIntersect(mesh.Hosts(), through(t, "x.example", "").Hosts()))
		mesh.Route = routing(t, "app", "{hostnames: [y.example]}")
		assert.False(t, gateway.HostsIntersect(mesh.Hosts(), through(t, "x.example", "").Hosts()))
	})
}

// A path is covered by others if each hostname that reaches it reaches one of them.
func TestCoveredBy(t *testing.T) {
	tests := tables.Read[map[string]struct {
		Listener, Route string
		Others          []string // hostnames of listeners
		Want            bool
	}](t, "testdata/tables/covered-by.yaml")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var others []gateway.Path
			for _, o := range test.Others {
				others = append(others, through(t, o, ""))
			}
			assert.Equal(t, test.Want, through(t, test.Listener, test.Route).CoveredBy(others))
		})
	}
}

// SEMANTICS section 7: hostnames that intersect.
func TestHostnames(t *testing.T) {
	tests := tables.Read[map[string]struct {
		Listener, Route string
		Want            bool
	}](t, "testdata/tables/hostnames.yaml")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			host := ""
			if test.Listener != "" {
				host = ", hostname: " + test.Listener
			}
			g := listening(t, "{name: l, port: 80, protocol: HTTP"+host+", "+allowAll+"}")
			r := routing(t, "app", "{parentRefs: [{namespace: infra, name: edge}], hostnames: "+test.Route+"}")
			assert.Equal(t, test.Want, len(attached(gateway.OwnListeners(g), r, nil)) == 1)
		})
	}
}
