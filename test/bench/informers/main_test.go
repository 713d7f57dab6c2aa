package main

import (
	"net"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// nowhere returns a kubeconfig of an API server that does not exist.
func nowhere(t *testing.T) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1"}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
	config.CurrentContext = "c"
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*config, file))
	return file
}

func TestInvalidOptions(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = taken.Close() })
	const policies = "authpolicies.v1.kuadrant.io"
	for name, c := range map[string]struct {
		options options
		want    string
	}{
		"no kubeconfig":          {options{kubeconfig: "nothing", policies: policies}, `read kubeconfig "nothing": `},
		"an incomplete resource": {options{kubeconfig: nowhere(t), policies: policies + ",authpolicies"}, `invalid -policies "authpolicies": must be resource.version.group`},
		"an address in use":      {options{kubeconfig: nowhere(t), policies: policies, health: taken.Addr().String()}, "listen for probes: "},
		"an invalid address":     {options{kubeconfig: nowhere(t), policies: policies, health: "here"}, "listen for probes: "},
	} {
		t.Run(name, func(t *testing.T) {
			assert.ErrorContains(t, run(t.Context(), c.options), c.want)
		})
	}
}
