//go:build e2e

package kinds

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// kindCase is a sequence of writes of policies of one kind, and the expected
// results. INFRA, APP and CLASS stand for the namespaces and the GatewayClass of
// the case.
type kindCase struct {
	// Name of the test. Default: the kind.
	Name       string `json:"name,omitempty"`
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Given are additional objects.
	Given []map[string]any `json:"given,omitempty"`
	Steps []step           `json:"steps"`
}

// step applies or deletes a policy or other objects, and has the expected output
// and effective policies.
type step struct {
	// Policy is namespace/name. Policies that are created in the same second have
	// the same age, and the first by name counts as older: names follow the
	// alphabet.
	Policy      string            `json:"policy,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Spec        map[string]any    `json:"spec,omitempty"`
	Objects     []map[string]any  `json:"objects,omitempty"`
	Delete      string            `json:"delete,omitempty"`
	Remove      []map[string]any  `json:"remove,omitempty"`
	// Denied are the reason codes of a denial; Warned are parts of the warnings,
	// one for each, without the warning about the extent of the write.
	Denied []string `json:"denied,omitempty"`
	Warned []string `json:"warned,omitempty"`
	// State is the state in the policy's annotation after the step.
	State string `json:"state,omitempty"`
	// Of is the object whose effective policies are compared, as namespace
	// kind/name. Default: the gateway.
	Of string `json:"of,omitempty"`
	// Effective are all paths of the kind through the object, after the step.
	Effective map[string]effectiveWant `json:"effective,omitempty"`
	// Outcomes are the states of all policies in the output of `effective`; the
	// step's own policy must have the same state in the output of `outcome`.
	Outcomes map[string]string `json:"outcomes,omitempty"`
}

// effectiveWant is the expected result on a path.
type effectiveWant struct {
	// Spec is the effective spec.
	Spec any `json:"spec"`
	// Policies are the policies on the path, from the highest to the lowest, as
	// name and state.
	Policies []string `json:"policies"`
}

func (c *kindCase) name() string { return cmp.Or(c.Name, c.Kind) }

// load reads the cases of a file.
func load(t *testing.T, file string) []kindCase {
	t.Helper()
	data, err := os.ReadFile(filepath.Clean(file))
	require.NoError(t, err)
	var raw []map[string]any
	require.NoError(t, yaml.Unmarshal(data, &raw), file)
	cases := make([]kindCase, len(raw))
	for i := range raw {
		one, err := yaml.Marshal(raw[i])
		require.NoError(t, err)
		name, _ := raw[i]["name"].(string)
		kind, _ := raw[i]["kind"].(string)
		text := namespacesOf(cmp.Or(name, kind)).named(string(one))
		require.NoError(t, yaml.UnmarshalStrict([]byte(text), &cases[i]), "%s: %s", file, kind)
	}
	return cases
}

// namespaces is the namespaces and the GatewayClass of a case.
type namespaces struct{ infra, app, class string }

func namespacesOf(name string) namespaces {
	name = strings.ToLower(strings.ReplaceAll(name, ".", "-"))
	return namespaces{infra: name + "-infra", app: name + "-app", class: name}
}

// placeholder is the name of a namespace or of the GatewayClass, as a word of its own.
var placeholder = regexp.MustCompile(`\b(INFRA|APP|CLASS)\b`)

func (w namespaces) named(text string) string {
	names := map[string]string{"INFRA": w.infra, "APP": w.app, "CLASS": w.class}
	return placeholder.ReplaceAllStringFunc(text, func(name string) string { return names[name] })
}

// create creates the usual objects.
func (w namespaces) create(t *testing.T) {
	t.Helper()
	for document := range strings.SplitSeq(w.named(common), "\n---\n") {
		var o unstructured.Unstructured
		require.NoError(t, yaml.Unmarshal([]byte(document), &o.Object))
		require.NoError(t, admin.Create(t.Context(), &o))
	}
}

// common are the usual objects of every case: a gateway with two listeners, a
// route of two rules on the first of them, and a service with a port for each
// rule.
const common = `
apiVersion: v1
kind: Namespace
metadata: {name: INFRA}
---
apiVersion: v1
kind: Namespace
metadata: {name: APP}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: CLASS}
spec: {controllerName: example.com/gateways}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: INFRA, name: edge, labels: {team: platform}}
spec:
  gatewayClassName: CLASS
  allowedListeners: {namespaces: {from: Same}}
  listeners:
  - {name: http, protocol: HTTP, port: 80, allowedRoutes: {namespaces: {from: All}}}
  - {name: other, protocol: HTTP, port: 8080, allowedRoutes: {namespaces: {from: All}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: APP, name: shop, labels: {team: shop}}
spec:
  parentRefs: [{namespace: INFRA, name: edge, sectionName: http}]
  rules:
  - name: toys
    matches: [{path: {type: PathPrefix, value: /toys}}]
    backendRefs: [{name: store, port: 80}]
  - name: admin
    matches: [{path: {type: PathPrefix, value: /admin}}]
    backendRefs: [{name: store, port: 81}]
---
apiVersion: v1
kind: Service
metadata: {namespace: APP, name: store, labels: {team: shop}}
spec: {ports: [{name: web, port: 80}, {name: admin, port: 81}]}
`
