package commands

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/messages"
)

// The reports of the demo: violations of a constraint and of an override, and a pull
// request that deletes the gateway's policies and adds others.
func TestGoldenReports(t *testing.T) {
	repository := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(repository, ".git"), 0o750))
	copyDemo := func(to string, names ...string) string {
		dir := filepath.Join(repository, to)
		require.NoError(t, os.MkdirAll(dir, 0o750))
		for _, name := range names {
			data, err := os.ReadFile(filepath.Join("../../../examples", name))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(name)), data, 0o600))
		}
		return dir
	}
	kinds := []string{"crds/kuadrant.io_authpolicies.yaml", "crds/kuadrant.io_ratelimitpolicies.yaml", "demo/00-cluster.yaml"}
	base := copyDemo("base", append(kinds, "demo/20-route-auth.yaml")...)
	head := copyDemo("head", append(kinds, "demo/20-route-auth.yaml", "demo/21-admin-auth-unset.yaml", "demo/30-route-limits-too-high.yaml")...)
	gateway, err := os.ReadFile("testdata/demo/gateway-policies.yaml")
	require.NoError(t, err)
	writeGateway := func(dir, policies string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "10-gateway-policies.yaml"), []byte(policies), 0o600))
	}
	writeGateway(base, string(gateway))
	changed := strings.Replace(string(gateway), "https://sso.example.com", "https://login.example.com", 1)
	writeGateway(head, strings.Replace(changed, "    strategy: merge\n    when", "    strateggy: merge\n    when", 1))
	all := copyDemo("all", append(kinds, "demo/22-route-auth-api-key.yaml", "demo/30-route-limits-too-high.yaml", "constraints/authentication.yaml")...)
	writeGateway(all, string(gateway))

	for name, args := range map[string][]string{
		"check":      {"check", "--from", base, "--to", head},
		"diff":       {"diff", "--from", base, "--to", head},
		"violations": {"violations", "-f", all},
	} {
		formats := reportFormats[4:]
		if name == "diff" {
			formats = changeFormats[4:]
		}
		for _, format := range formats {
			t.Run(name+" as "+string(format), func(t *testing.T) {
				got := run(t, "", append(args, "-o", string(format))...)
				require.NotEqual(t, exitError, got.code, got.stderr)
				if format == "sarif" {
					got.stdout = withoutRules(t, got.stdout)
				}
				file := filepath.Join("testdata/golden", "report-"+name+"."+string(format))
				if messages.Update() {
					require.NoError(t, os.WriteFile(file, []byte(got.stdout), 0o600))
				}
				want, err := os.ReadFile(file)
				require.NoError(t, err)
				assert.Equal(t, string(want), got.stdout, file)
			})
		}
	}
}

// withoutRules returns a SARIF log without the texts of the reasons, which are those of
// docs/reasons.md.
func withoutRules(t *testing.T, text string) string {
	t.Helper()
	log := decode[map[string]any](t, text)
	for _, r := range log["runs"].([]any) {
		driver := r.(map[string]any)["tool"].(map[string]any)["driver"].(map[string]any)
		require.NotEmpty(t, driver["rules"])
		delete(driver, "rules")
	}
	data, err := json.MarshalIndent(log, "", "  ")
	require.NoError(t, err)
	return string(data) + "\n"
}
