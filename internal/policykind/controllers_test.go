package policykind_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/policykind"
)

func TestReadBy(t *testing.T) {
	for profile, want := range map[string]map[string]bool{
		"{}":                                    {"example.com/a": true},
		"controllers: [example.com/a]":          {"example.com/a": true, "example.com/a-b": false, "example.com/b": false},
		"controllers: [example.com/*]":          {"example.com/a": true, "other.example.com/a": false},
		"controllers: [one.org/a, two.org/a*]":  {"one.org/a": true, "two.org/ab": true, "two.org/b": false},
		"controllers: [gateway.envoyproxy.io/]": {"gateway.envoyproxy.io/a": false},
	} {
		for controller, read := range want {
			assert.Equal(t, read, mustCompile(t, profile).ReadBy(controller), "%s: %s", profile, controller)
		}
	}
}

func TestKnownController(t *testing.T) {
	own := []*policykind.Kind{mustCompile(t, "controllers: [example.com/own*]")}
	for controller, want := range map[string]bool{
		"gateway.envoyproxy.io/gatewayclass-controller": true, // of a built-in profile
		"istio.io/mesh-controller":                      true,
		"traefik.io/gateway-controller":                 true, // of no kind
		"example.com/own-build":                         true, // of a profile
		"example.com/another":                           false,
		"":                                              false,
	} {
		assert.Equal(t, want, policykind.KnownController(controller, own), controller)
	}
	assert.False(t, policykind.KnownController("example.com/own-build", nil))
}

// Which gateways read the policies of the built-in kinds; the controllers are those of
// the implementations' own code and documents.
func TestBuiltInControllers(t *testing.T) {
	const (
		envoy, istio, nginx = "gateway.envoyproxy.io/gatewayclass-controller", "istio.io/gateway-controller", "gateway.nginx.org/nginx-gateway-controller"
		kgateway, agent     = "kgateway.dev/kgateway", "agentgateway.dev/agentgateway"
		gloo, gke, consul   = "solo.io/gloo-gateway", "networking.gke.io/gateway", "consul.hashicorp.com/gateway-controller"
		azure, apisix       = "alb.networking.azure.io/alb-controller", "apisix.apache.org/apisix-ingress-controller"
		lattice, airlock    = "application-networking.k8s.aws/gateway-api-controller", "microgateway.airlock.com/gatewayclass-controller"
	)
	all := []string{envoy, istio, nginx, kgateway, agent, gloo, gke, consul, azure, apisix, lattice, airlock}
	byGroup := map[string][]string{
		"aigateway.envoyproxy.io": {envoy}, "gateway.envoyproxy.io": {envoy}, "gateway.nginx.org": {nginx}, "gateway.kgateway.dev": {kgateway}, "agentgateway.dev": {agent},
		"gateway.solo.io": {gloo}, "networking.gke.io": {gke}, "consul.hashicorp.com": {consul}, "kuadrant.io": {envoy, istio},
		"security.istio.io": {istio}, "telemetry.istio.io": {istio}, "extensions.istio.io": {istio}, "networking.istio.io": {istio},
		"extensions.kuadrant.io": {envoy, istio}, "alb.networking.azure.io": {azure}, "apisix.apache.org": {apisix},
		"application-networking.k8s.aws": {lattice}, "microgateway.airlock.com": {airlock}, "policy.linkerd.io": all,
		"gateway.networking.k8s.io": all, "gateway.networking.x-k8s.io": all,
	}
	kinds := policykind.BuiltinKinds()
	for _, k := range kinds {
		want := byGroup[k.Group]
		if k.Kind == "DNSPolicy" || k.Kind == "TLSPolicy" {
			want = all
		}
		var got []string
		for _, controller := range all {
			if k.ReadBy(controller) {
				got = append(got, controller)
			}
		}
		assert.Equal(t, want, got, k.Ref())
	}
}

// A profile may limit the objects of a kind that may be targeted.
func TestTargetNames(t *testing.T) {
	k := mustCompile(t, "targets: {kinds: [{group: gateway.networking.k8s.io, kind: GatewayClass, names: [a, b]}], classFrom: ['*']}")
	for name, want := range map[string]string{"a": "", "b": "", "c": "Paint can only target GatewayClass a, b"} {
		p := spec(t, k, "targetRef: {kind: GatewayClass, name: "+name+"}")
		require.NoError(t, p.Invalid)
		assert.Equal(t, want, p.Targets[0].Refused)
	}
}
