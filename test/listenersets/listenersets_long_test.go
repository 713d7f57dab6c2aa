//go:build long

// Package listenersets runs the server and the plugin with the real
// CustomResourceDefinitions of the Gateway API release that has XListenerSets:
// with these alone, and together with ListenerSets.
package listenersets

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/server"
	"overrule.dev/overrule/test/shop"
)

const gatewayAPI = "sigs.k8s.io/gateway-api"

// pinned returns the folder of the CustomResourceDefinitions that have
// XListenerSets.
func pinned(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", gatewayAPI)
	cmd.Dir = filepath.Join(root(t), "test", "listenersets", "crds")
	out, err := cmd.Output()
	var found struct{ Dir, Error string }
	require.NoError(t, json.Unmarshal(out, &found), "%v", err)
	require.Empty(t, found.Error)
	return filepath.Join(found.Dir, "config", "crd", "experimental")
}

func root(t *testing.T) string {
	t.Helper()
	out, err := env.Repository(t.Context())
	require.NoError(t, err)
	return out
}

// schemaOf returns the schema of the only version of a CRD.
func schemaOf(t *testing.T, file string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	var crd apiextensionsv1.CustomResourceDefinition
	require.NoError(t, yaml.Unmarshal(data, &crd))
	require.Len(t, crd.Spec.Versions, 1)
	return crd.Spec.Versions[0].Schema.OpenAPIV3Schema
}

// An XListenerSet is decoded as a ListenerSet: the fields that are read have the
// same name and type in both schemas.
func TestBothSchemasHaveWhatIsRead(t *testing.T) {
	current, err := env.ModuleFolder(t.Context(), gatewayAPI)
	require.NoError(t, err)
	set := schemaOf(t, filepath.Join(current, "config", "crd", "standard", "gateway.networking.k8s.io_listenersets.yaml"))
	x := schemaOf(t, filepath.Join(pinned(t), "gateway.networking.x-k8s.io_xlistenersets.yaml"))
	for path, kind := range map[string]string{
		"spec.parentRef.group": "string", "spec.parentRef.kind": "string",
		"spec.parentRef.namespace": "string", "spec.parentRef.name": "string",
		"spec.listeners.name": "string", "spec.listeners.hostname": "string",
		"spec.listeners.port": "integer", "spec.listeners.protocol": "string",
		"spec.listeners.allowedRoutes.kinds.group":         "string",
		"spec.listeners.allowedRoutes.kinds.kind":          "string",
		"spec.listeners.allowedRoutes.namespaces.from":     "string",
		"spec.listeners.allowedRoutes.namespaces.selector": "object",
	} {
		assert.Equal(t, kind, typeAt(set, path), "ListenerSet: %s", path)
		assert.Equal(t, kind, typeAt(x, path), "XListenerSet: %s", path)
	}
}

// typeAt returns the type of a field, "" if there is none; it descends into
// lists.
func typeAt(s *apiextensionsv1.JSONSchemaProps, path string) string {
	for name := range strings.SplitSeq(path, ".") {
		if s.Items != nil {
			s = s.Items.Schema
		}
		next, ok := s.Properties[name]
		if !ok {
			return ""
		}
		s = &next
	}
	return s.Type
}

// world is a control plane with a server, and a developer without the verb
// override.
type world struct {
	*env.Env
	*server.Server
	dev *env.User
}

func TestXListenerSets(t *testing.T) {
	w := begin(t)
	t.Run("alone", w.alone)
	t.Run("beside ListenerSets", w.beside)
}

func begin(t *testing.T) *world {
	t.Helper()
	e := env.Start(t, env.WithoutCRDs())
	require.NoError(t, e.InstallCRDs(pinned(t), filepath.Join(root(t), "deploy", "crds"), filepath.Join(root(t), "examples", "crds")))
	w := &world{Env: e, Server: server.Start(t, e, server.Options{})}
	w.dev = e.MustAddUser(t, "dev", nil, rbacv1.PolicyRule{
		APIGroups: []string{"gateway.networking.k8s.io", "gateway.networking.x-k8s.io"}, Resources: []string{"*"}, Verbs: []string{"*"},
	})
	w.applied(t, shop.In("infra", "app", shop.Namespaces+"---"+open(shop.Gateway)+"---"+open(strings.ReplaceAll(shop.Gateway, "edge", "inner"))+"---"+shop.GatewayAuth))
	return w
}

// open returns a gateway that allows listener sets of all namespaces.
func open(gw string) string {
	return strings.Replace(gw, "  gatewayClassName:", "  allowedListeners: {namespaces: {from: All}}\n  gatewayClassName:", 1)
}

// set returns an XListenerSet or a ListenerSet of a gateway, for one hostname. An
// XListenerSet has no port, which its release allows.
func set(kind, name, gw string) string {
	version, port := "gateway.networking.k8s.io/v1", "port: 80, "
	if kind == "XListenerSet" {
		version, port = "gateway.networking.x-k8s.io/v1alpha1", ""
	}
	return fmt.Sprintf(`
apiVersion: %s
kind: %s
metadata: {namespace: app, name: %s}
spec:
  parentRef: {group: gateway.networking.k8s.io, kind: Gateway, namespace: infra, name: %s}
  listeners: [{name: extra, hostname: shop.example.com, %sprotocol: HTTP, allowedRoutes: {namespaces: {from: Same}}}]
`, version, kind, name, gw, port)
}

const (
	toMore  = "{group: gateway.networking.x-k8s.io, kind: XListenerSet, name: more}"
	toOther = "{group: gateway.networking.x-k8s.io, kind: XListenerSet, name: other}"
	toSet   = "{group: gateway.networking.k8s.io, kind: ListenerSet, name: more}"
	toEdge  = "{namespace: infra, name: edge}"
	toInner = "{namespace: infra, name: inner}"
)

// route returns the route of the store with a parent.
func route(parent string) string {
	return strings.NewReplacer("APP", "app", "{namespace: INFRA, name: edge}", parent).Replace(shop.Route)
}

// alone serves XListenerSets, and no ListenerSets.
func (w *world) alone(t *testing.T) {
	w.applied(t, set("XListenerSet", "more", "edge")+"---"+set("XListenerSet", "other", "inner")+"---"+route(toMore))
	elsewhere := strings.Replace(route(toMore), "toystore}", "elsewhere}", 1) + "  hostnames: [www.example.org]\n"
	w.applied(t, elsewhere)
	w.soonDenied(t, route(toOther))
	w.denied(t, route(toInner), "Listener infra/inner#http")
	w.denied(t, set("XListenerSet", "more", "inner"), "OverrideEvaded")
	w.allowed(t, route(toEdge))
	w.allowed(t, set("XListenerSet", "third", "inner"))

	for _, word := range []string{"xlistenerset", "xlistenersets", "lset", "xlistenersets.gateway.networking.x-k8s.io"} {
		assert.Equal(t, []string{"rules.authentication.sso of infra/gw-auth on HTTPRoute app/toystore by XListenerSet app/more"}, w.effective(t, word+"/more"), word)
		assert.Empty(t, w.effective(t, word+"/other"), word)
	}
}

// beside adds a ListenerSet of the same name on the gateway without the override.
func (w *world) beside(t *testing.T) {
	current, err := env.ModuleFolder(t.Context(), gatewayAPI)
	require.NoError(t, err)
	require.NoError(t, w.InstallCRDs(filepath.Join(current, "config", "crd", "standard", "gateway.networking.k8s.io_listenersets.yaml")))
	w.applied(t, set("ListenerSet", "more", "inner"))
	w.soonDenied(t, route(toSet))
	w.denied(t, route(toOther), "Listener app/other#extra")
	w.allowed(t, route(toEdge))

	assert.Len(t, w.effective(t, "xlistenerset/more"), 1)
	assert.Empty(t, w.effective(t, "listenerset/more"))
	got := w.Overrule("effective", "-n", "app", "lset/more")
	assert.Equal(t, 2, got.Code)
	assert.Contains(t, got.Stderr, `kind "lset" is ambiguous: specify one of`)
}

// effective returns the rules on the paths through an object, each with its
// policy, its route and its listener set.
func (w *world) effective(t *testing.T, object string) []string {
	t.Helper()
	got := w.Overrule("effective", "-n", "app", object, "-o", "json")
	require.Zero(t, got.Code, got.Stderr)
	var list api.EffectivePolicyList
	require.NoError(t, json.Unmarshal([]byte(got.Stdout), &list))
	seen := make(map[string]bool)
	var out []string
	for i := range list.Items {
		at := make(map[string]string)
		for _, e := range list.Items[i].Path {
			at[e.Kind] = e.Kind + " " + e.Namespace + "/" + e.Name
		}
		for _, r := range list.Items[i].Rules {
			text := fmt.Sprintf("%s of %s/%s on %s by %s", r.Rule, r.From.Namespace, r.From.Name, at["HTTPRoute"], at["XListenerSet"])
			if !seen[text] {
				out = append(out, text)
			}
			seen[text] = true
		}
	}
	return out
}

func (w *world) applied(t *testing.T, manifest string) {
	t.Helper()
	got := w.Apply(manifest)
	require.Zero(t, got.Code, got.Stderr)
}

// soonDenied waits until the server has observed the objects that a denial
// depends on.
func (w *world) soonDenied(t *testing.T, manifest string) {
	t.Helper()
	var got env.Result
	env.Soon(t, func() bool {
		got = w.dev.Apply(manifest, "--dry-run=server")
		return strings.Contains(got.Stderr, "OverrideEvaded")
	}, "the write is not denied")
	assert.Contains(t, got.Stderr, "override rules.authentication.sso of AuthPolicy infra/gw-auth")
}

func (w *world) denied(t *testing.T, manifest, why string) {
	t.Helper()
	got := w.dev.Apply(manifest, "--dry-run=server")
	assert.Equal(t, 1, got.Code, got.Stdout)
	assert.Contains(t, got.Stderr, "OverrideEvaded")
	assert.Contains(t, got.Stderr, why)
}

func (w *world) allowed(t *testing.T, manifest string) {
	t.Helper()
	got := w.dev.Apply(manifest, "--dry-run=server")
	assert.Zero(t, got.Code, got.Stderr)
}
