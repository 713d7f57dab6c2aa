package server

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
)

// writeKubeconfigFor writes a kubeconfig for a host.
func writeKubeconfigFor(t *testing.T, host string) string {
	t.Helper()
	return writeKubeconfig(t, `{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: "`+host+`"}}],
		users: [{name: u, user: {}}], contexts: [{name: x, context: {cluster: c, user: u}}], current-context: x}`)
}

func writeKubeconfig(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// outsideCluster makes the test run outside a cluster, with this kubeconfig in the home
// directory.
func outsideCluster(t *testing.T, home string) {
	t.Helper()
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	t.Setenv("KUBECONFIG", "")
	was := clientcmd.RecommendedHomeFile
	clientcmd.RecommendedHomeFile = home
	t.Cleanup(func() { clientcmd.RecommendedHomeFile = was })
}

func TestRESTConfigPrecedence(t *testing.T) {
	const given, environment, home = "https://given", "https://environment", "https://home"
	for name, c := range map[string]struct{ flag, variable, home, want string }{
		"by the flag":         {given, environment, home, given},
		"by the environment":  {"", environment, home, environment},
		"by the home":         {"", "", home, home},
		"by the flag, in all": {given, "", "", given},
	} {
		t.Run(name, func(t *testing.T) {
			file := func(host string) string {
				if host == "" {
					return ""
				}
				return writeKubeconfigFor(t, host)
			}
			outsideCluster(t, file(c.home))
			t.Setenv("KUBECONFIG", file(c.variable))
			cfg, err := loadRESTConfig(file(c.flag))
			require.NoError(t, err)
			assert.Equal(t, c.want, cfg.Host)
		})
	}
}

func TestNoClusterConfigured(t *testing.T) {
	nowhere, broken := filepath.Join(t.TempDir(), "nowhere"), writeKubeconfig(t, "{")
	for name, c := range map[string]struct{ flag, variable, want string }{
		"at all":                        {"", "", "read kubeconfig: invalid configuration: no configuration has been provided"},
		"in what the environment names": {"", nowhere, "; set --kubeconfig, or $KUBECONFIG to a file that defines a cluster"},
		"in a file that cannot be read": {"", broken, `read kubeconfig: error loading config file "` + broken + `": `},
		"in the file that is given":     {nowhere, broken, `read kubeconfig: stat ` + nowhere + `: no such file or directory`},
	} {
		t.Run(name, func(t *testing.T) {
			outsideCluster(t, nowhere)
			t.Setenv("KUBECONFIG", c.variable)
			for _, args := range [][]string{nil, {"uninstall-webhooks"}} {
				cmd := NewCommand()
				cmd.SetArgs(append(args, "--kubeconfig="+c.flag))
				require.ErrorContains(t, cmd.ExecuteContext(t.Context()), c.want, args)
			}
		})
	}
}

func TestHTTP2PingsKeepTheEnvironment(t *testing.T) {
	const idle, ping = "HTTP2_READ_IDLE_TIMEOUT_SECONDS", "HTTP2_PING_TIMEOUT_SECONDS"
	t.Setenv(idle, "60")
	t.Setenv(ping, "") // restored after the test
	require.NoError(t, os.Unsetenv(ping))

	require.NoError(t, configureHTTP2Pings())

	assert.Equal(t, "60", os.Getenv(idle), "a value that is set stays")
	assert.Equal(t, "3", os.Getenv(ping))
}
