package manifest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/manifest"
)

// readIn writes a file into a directory and reads it.
func readIn(t *testing.T, dir, name, content string) *manifest.Set {
	t.Helper()
	file := filepath.Join(dir, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
	set, err := manifest.Read([]string{file}, nil)
	require.NoError(t, err)
	return set
}

func TestSource(t *testing.T) {
	const object = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n"
	annotated := func(origin string) string {
		return "apiVersion: v1\nkind: Service\nmetadata:\n  name: a\n  annotations:\n    config.kubernetes.io/origin: |\n      " + origin + "\n"
	}
	for name, c := range map[string]struct {
		rendered string
		want     string // relative to the directory; "" for none
	}{
		"kustomize's annotation":                       {annotated("path: ../base/a b.yaml"), "base/a b.yaml"},
		"of a remote base":                             {annotated("path: ../base/a b.yaml\n      repo: https://example.com/x"), ""},
		"of a generator":                               {annotated("configuredIn: ../base/a b.yaml"), ""},
		"that is no YAML":                              {annotated("{"), ""},
		"that names no file":                           {annotated("path: ../base"), ""},
		"that names a missing file":                    {annotated("path: ../base/missing.yaml"), ""},
		"that names an absolute path":                  {annotated("path: /etc/passwd"), ""},
		"Helm's comment":                               {"---\n# Source: ../base/a b.yaml\n" + object, "base/a b.yaml"},
		"after other comments":                         {"# a\n\n# Source: ../base/a b.yaml\r\n" + object, "base/a b.yaml"},
		"a comment in the object is not Helm's":        {object + "# Source: ../base/a b.yaml\n", ""},
		"a comment of another document is not its own": {"# Source: ../base/a b.yaml\n---\n" + object, ""},
		"an object that was not rendered":              {object, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			readIn(t, dir, "base/a b.yaml", object)
			set := readIn(t, dir, "out/rendered.yaml", c.rendered)
			require.Len(t, set.Objects, 1)
			got, ok := set.Objects[0].Source()
			assert.Equal(t, c.want != "", ok)
			if ok {
				assert.Equal(t, filepath.Join(dir, c.want), got)
			}
		})
	}
}

func TestFind(t *testing.T) {
	const services = "apiVersion: v1\nkind: Service\nmetadata: {name: a}\n---\napiVersion: v1\nkind: Service\nmetadata: {name: b}\n"
	const gateway = "---\napiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: edge}\n"
	set := readIn(t, t.TempDir(), "a.yaml", services+gateway)
	for name, c := range map[string]struct{ group, kind, name, want string }{
		"the same name": {"", "Service", "b", "b"},
		"another name, of the only one of its kind": {api.GatewayGroup, "Gateway", "prod-edge", "edge"},
		"another name, of one of several":           {"", "Service", "prod-a", ""},
		"another group":                             {"", "Gateway", "edge", ""},
		"another kind":                              {"", "ConfigMap", "a", ""},
	} {
		t.Run(name, func(t *testing.T) {
			found := set.Find(&manifest.Object{Kind: api.PolicyKind{Group: c.group, Kind: c.kind}, Name: c.name})
			if c.want == "" {
				assert.Nil(t, found)
				return
			}
			require.NotNil(t, found)
			assert.Equal(t, c.want, found.Name)
		})
	}
}
