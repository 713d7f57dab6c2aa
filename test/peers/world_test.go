//go:build long

package peers

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// object is a Kubernetes object.
type object = map[string]any

// world is a set of objects by the names of the lists in Envoy Gateway's golden inputs, such
// as httpRoutes. What is at other names is passed on to Envoy Gateway alone.
type world map[string]any

const (
	gatewayAPI   = "gateway.networking.k8s.io"
	envoyGateway = "gateway.envoyproxy.io"
	gatewayClass = "envoy-gateway-class"
)

// listKind is the kind of the objects of a list.
type listKind struct{ list, apiVersion, kind string }

// routeLists are the lists of routes.
var routeLists = []listKind{
	{"httpRoutes", gatewayAPI + "/v1", "HTTPRoute"},
	{"grpcRoutes", gatewayAPI + "/v1", "GRPCRoute"},
	{"tlsRoutes", gatewayAPI + "/v1", "TLSRoute"},
	{"tcpRoutes", gatewayAPI + "/v1", "TCPRoute"},
	{"udpRoutes", gatewayAPI + "/v1", "UDPRoute"},
}

// policyLists are the lists of policies of which one at most holds on a path.
var policyLists = []listKind{
	{"clientTrafficPolicies", envoyGateway + "/v1alpha1", "ClientTrafficPolicy"},
	{"backendTrafficPolicies", envoyGateway + "/v1alpha1", "BackendTrafficPolicy"},
	{"securityPolicies", envoyGateway + "/v1alpha1", "SecurityPolicy"},
	{"envoyExtensionPolicies", envoyGateway + "/v1alpha1", "EnvoyExtensionPolicy"},
}

// localLists are the lists of objects that policies refer to by name.
var localLists = []listKind{
	{"services", "v1", "Service"},
	{"serviceImports", "multicluster.x-k8s.io/v1alpha1", "ServiceImport"},
	{"backends", envoyGateway + "/v1alpha1", "Backend"},
	{"secrets", "v1", "Secret"},
	{"configMaps", "v1", "ConfigMap"},
	{"endpointSlices", "discovery.k8s.io/v1", "EndpointSlice"},
}

// readLists are all lists whose objects Overrule is given.
var readLists = slices.Concat(routeLists, policyLists, localLists[:3], []listKind{
	{"gateways", gatewayAPI + "/v1", "Gateway"},
	{"listenerSets", gatewayAPI + "/v1", "ListenerSet"},
	{"backendTLSPolicies", gatewayAPI + "/v1", "BackendTLSPolicy"},
	{"referenceGrants", gatewayAPI + "/v1beta1", "ReferenceGrant"},
	{"namespaces", "v1", "Namespace"},
})

// readWorld reads a golden input.
func readWorld(t *testing.T, file string) world {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	var w world
	require.NoError(t, yaml.Unmarshal(data, &w))
	asStored(object(w))
	for _, l := range readLists {
		for name, objects := range w {
			if strings.EqualFold(name, l.list) && name != l.list {
				delete(w, name)
				w[l.list] = objects
			}
		}
	}
	return w
}

// textOf makes a text of a field that is a number.
func textOf(o object, field string) {
	if n, isNumber := o[field].(float64); isNumber {
		o[field] = fmt.Sprint(n)
	}
}

// asStored makes of golden inputs what an API server would store: the names of sections and
// the values of matches are texts, not numbers, and fields of references have names in lower case.
func asStored(v any) {
	switch v := v.(type) {
	case object:
		for _, field := range []string{"Group", "Kind", "Namespace", "Name", "Port"} {
			if child, ok := v[field]; ok {
				v[strings.ToLower(field)] = child
				delete(v, field)
			}
		}
		for _, match := range slices.Concat(items(v, "headers"), items(v, "queryParams")) {
			textOf(match, "value")
		}
		textOf(v, "sectionName")
		for _, child := range v {
			asStored(child)
		}
	case []any:
		for _, child := range v {
			asStored(child)
		}
	}
}

// copied returns a deep copy.
func copied[T any](t *testing.T, v T) T {
	t.Helper()
	data, err := json.Marshal(v)
	require.NoError(t, err)
	var out T
	require.NoError(t, json.Unmarshal(data, &out))
	return out
}

// list returns the objects of a list.
func (w world) list(name string) []object {
	all, _ := w[name].([]any)
	out := make([]object, len(all))
	for i := range all {
		out[i], _ = all[i].(object)
	}
	return out
}

func (w world) set(name string, objects []object) {
	all := make([]any, len(objects))
	for i, o := range objects {
		all[i] = o
	}
	w[name] = all
}

func (w world) add(name string, objects ...object) { w.set(name, append(w.list(name), objects...)) }

// complete adds what both need to know: kinds, times, the names of rules, the class.
func (w world) complete() {
	for _, l := range slices.Concat(readLists, localLists[3:]) {
		for _, o := range w.list(l.list) {
			if meta := at(o, "metadata"); meta["namespace"] == nil && l.kind != "Namespace" {
				meta["namespace"] = "default"
			}
		}
	}
	for _, l := range readLists {
		w.set(l.list, unique(w.list(l.list)))
		for i, o := range w.list(l.list) {
			o["apiVersion"], o["kind"] = l.apiVersion, l.kind
			meta := at(o, "metadata")
			if _, dated := meta["creationTimestamp"]; !dated { // Envoy Gateway takes the order of the list
				meta["creationTimestamp"] = time.Unix(int64(i+1), 0).UTC().Format(time.RFC3339)
			}
		}
	}
	for _, l := range routeLists {
		for _, route := range w.list(l.list) {
			for i, r := range items(at(route, "spec"), "rules") {
				if r["name"] == nil {
					r["name"] = fmt.Sprintf("unnamed-%d", i)
				}
			}
		}
	}
	w["gatewayClass"] = object{
		"apiVersion": gatewayAPI + "/v1", "kind": "GatewayClass", "metadata": object{"name": gatewayClass},
		"spec": object{"controllerName": envoyGateway + "/gatewayclass-controller"},
	}
}

// unique returns the objects without those of the name of another one, which some golden
// inputs have.
func unique(objects []object) []object {
	seen := map[string]bool{}
	return slices.DeleteFunc(objects, func(o object) bool {
		name := namespaceOf(o) + "/" + nameOf(o)
		again := seen[name]
		seen[name] = true
		return again
	})
}

// manifests returns the objects for Overrule.
func (w world) manifests(t *testing.T) string {
	t.Helper()
	all := []object{w["gatewayClass"].(object)} //nolint:forcetypeassert // complete sets it
	for _, l := range readLists {
		all = append(all, w.list(l.list)...)
	}
	var out strings.Builder
	for _, o := range all {
		data, err := json.Marshal(o)
		require.NoError(t, err)
		fmt.Fprintf(&out, "---\n%s\n", data)
	}
	return out.String()
}

// at returns a field of an object that is an object itself; it is created if it is missing.
func at(o object, name string) object {
	child, ok := o[name].(object)
	if !ok {
		child = object{}
		o[name] = child
	}
	return child
}

// items returns the objects of a field that is a list.
func items(o object, name string) []object { return world(o).list(name) }

func text(o object, name string) string { s, _ := o[name].(string); return s }

func namespaceOf(o object) string { return text(at(o, "metadata"), "namespace") }

func nameOf(o object) string { return text(at(o, "metadata"), "name") }

// namespaces returns those of the objects of some lists.
func (w world) namespaces(lists []listKind) []string {
	seen := map[string]bool{}
	for _, l := range lists {
		for _, o := range w.list(l.list) {
			seen[namespaceOf(o)] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// addFixtures adds the objects that golden inputs leave out: those of the file, with an
// endpoint for each service.
func (w world) addFixtures(t *testing.T) {
	t.Helper()
	fixtures := readWorld(t, "testdata/fixtures.yaml")
	for name := range fixtures {
		w.add(name, fixtures.list(name)...)
	}
	for _, s := range fixtures.list("services") {
		var ports []any
		for _, p := range items(at(s, "spec"), "ports") {
			ports = append(ports, object{"name": p["name"], "port": p["targetPort"], "protocol": p["protocol"]})
		}
		w.add("endpointSlices", object{
			"metadata": object{
				"namespace": namespaceOf(s), "name": nameOf(s),
				"labels": object{"kubernetes.io/service-name": nameOf(s)},
			},
			"addressType": "IPv4", "ports": ports,
			"endpoints": []any{object{"addresses": []any{"192.0.2.1"}, "conditions": object{"ready": true}}},
		})
	}
}
