//go:build integration

package helm_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	chartTemplate = `apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {namespace: infra, name: {{ .Release.Name }}-auth}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}
  overrides:
    rules:
      authentication:
        {{ .Values.rule }}: {value: 1}
`
	chartGateway = `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: infra, name: edge}
spec: {gatewayClassName: a, listeners: [{name: http, protocol: HTTP, port: 80, allowedRoutes: {namespaces: {from: All}}}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: app, name: shop}
spec: {parentRefs: [{namespace: infra, name: edge}], rules: [{name: all}]}
`
)

// writeTree writes a chart, whose folder has another name than the chart, with values.
func writeTree(t *testing.T, values string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"the charts/gw/Chart.yaml":              "apiVersion: v2\nname: gateways\nversion: 1.0.0\n",
		"the charts/gw/templates/policy.yaml":   chartTemplate,
		"the charts/gw/templates/gateways.yaml": chartGateway,
		"values/prod.yaml":                      values,
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, ".git"), 0o755))
	return dir
}

// The scripts of examples/pipelines render charts: test/pipelines has all other tests.
func TestPipelinesRenderCharts(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	programs := t.TempDir()
	require.NoError(t, os.Symlink(buildHelm3(t).path, filepath.Join(programs, "helm")))
	require.NoError(t, os.Symlink(filepath.Join(root, "bin", "kubectl-overrule"), filepath.Join(programs, "kubectl-overrule")))
	base := writeTree(t, "rule: sso\n")
	for name, c := range map[string]struct {
		values, args string
		code         int
		want         string // in the output
	}{
		"a value that breaks an override is reported at the template": {
			"rule: key\n", "--values=values/prod.yaml", 1, "::error file=the charts/gw/templates/policy.yaml,title=OverrideRemoved%3A AuthPolicy infra/gw-auth::",
		},
		"a value without effect is no finding": {"rule: sso\nother: 1\n", "--values=values/prod.yaml", 0, ""},
		"a chart that cannot be rendered is an error": {
			"rule: sso\n", "--values\nvalues/missing.yaml", 2, `::error title=Overrule::cannot render the Helm chart "the charts/gw" of the base:%0A`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "bash", filepath.Join(root, "examples/pipelines/scripts/compare.sh"), base, writeTree(t, c.values))
			cmd.Env = []string{
				"PATH=" + programs + ":/usr/local/bin:/usr/bin:/bin", "HOME=" + t.TempDir(),
				"OVERRULE_FORMAT=github", "OVERRULE_PATHS=the charts/gw", "OVERRULE_HELM_ARGS=" + c.args,
			}
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			err := cmd.Run()
			if _, exited := errors.AsType[*exec.ExitError](err); !exited {
				require.NoError(t, err)
			}
			require.Equal(t, c.code, cmd.ProcessState.ExitCode(), "%s%s", stdout.String(), stderr.String())
			assert.Contains(t, stdout.String(), c.want)
			assert.Equal(t, c.want == "", stdout.Len() == 0, stdout.String())
		})
	}
}
