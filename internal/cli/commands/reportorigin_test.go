package commands

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const originGateway = `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: infra, name: edge}
spec: {gatewayClassName: a, listeners: [{name: http, protocol: HTTP, port: 80, allowedRoutes: {namespaces: {from: All}}}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: app, name: shop}
spec: {parentRefs: [{namespace: infra, name: edge}], rules: [{name: all}]}
`

const originPolicy = `apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata:
  namespace: infra
  name: gw-auth
  annotations:
    config.kubernetes.io/origin: |
      path: ORIGIN
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}
  overrides: {strategy: merge, rules: {authentication: {sso: {value: 1}}}}
`

// revisionDir writes a rendered revision, and the file it was rendered from.
func revisionDir(t *testing.T, rendered, source string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"out/rendered.yaml": rendered, "src/policy.yaml": source} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

func TestReportsNameTheFileThatAnObjectWasRenderedFrom(t *testing.T) {
	from := revisionDir(t, originGateway+"---\n"+strings.Replace(originPolicy, "ORIGIN", "../src/policy.yaml", 1), "")
	rendered := originGateway + "---\n" + strings.Replace(originPolicy, "sso: {value: 1}", "key: {value: 1}", 1)
	source := "kind: AuthPolicy\napiVersion: kuadrant.io/v1\nmetadata: {name: gw-auth}\nspec:\n  overrides:\n    rules:\n      authentication:\n        key: {value: 1}\n"
	for name, c := range map[string]struct{ origin, source, want string }{
		"the position is in the source":                    {"../src/policy.yaml", source, "file=src/policy.yaml,line=7,"},
		"of a template there is no position, but the file": {"../src/policy.yaml", "{{ if .Values.a }}", "file=src/policy.yaml,title="},
		"without the source it is in the rendered file":    {"../src/missing.yaml", source, "file=out/rendered.yaml,line=21,"},
	} {
		t.Run(name, func(t *testing.T) {
			to := revisionDir(t, strings.Replace(rendered, "ORIGIN", c.origin, 1), c.source)
			got := run(t, "", "check", "--from", filepath.Join(from, "out"), "--to", filepath.Join(to, "out"), "-o", "github", "--report-root", to)
			assert.Contains(t, got.stdout, c.want, got.stderr)
			assert.Contains(t, got.stdout, "OverrideRemoved")
		})
	}
}

func TestAnotherSourceIsNoChange(t *testing.T) {
	from := revisionDir(t, originGateway+"---\n"+strings.Replace(originPolicy, "ORIGIN", "../src/policy.yaml", 1), "")
	moved := strings.Replace(originPolicy, "ORIGIN", "../src/other.yaml", 1)
	without := strings.Replace(originPolicy, "  annotations:\n    config.kubernetes.io/origin: |\n      path: ORIGIN\n", "", 1)
	require.NotContains(t, without, "ORIGIN")
	annotated := strings.Replace(moved, "  annotations:\n", "  annotations:\n    a: b\n", 1)
	for name, c := range map[string]struct {
		policy  string
		changed bool
	}{
		"a file that moved":               {moved, false},
		"an object that was not rendered": {without, false},
		"another annotation is a change":  {annotated, true},
	} {
		t.Run(name, func(t *testing.T) {
			to := revisionDir(t, originGateway+"---\n"+c.policy, "")
			got := run(t, "", "check", "--from", filepath.Join(from, "out"), "--to", filepath.Join(to, "out"))
			assert.Equal(t, c.changed, strings.Contains(got.stdout, "UPDATE AuthPolicy infra/gw-auth"), got.stdout)
		})
	}
}
