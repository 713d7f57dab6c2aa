//go:build e2e

package certmanager

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cert-manager/cert-manager/pkg/apis/certmanager"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/process"
	"overrule.dev/overrule/test/server"
	"overrule.dev/overrule/test/volume"
)

// The Certificates of deploy/components/cert-manager.
const (
	servingName   = "overrule-serving"
	authorityName = "overrule-authority"
)

// applyOverlay applies the overlay's objects for cert-manager and their rights,
// without the pods.
func applyOverlay(t *testing.T) {
	t.Helper()
	root, err := env.Repository(t.Context())
	require.NoError(t, err)
	rendered := plane.Kubectl("kustomize", filepath.Join(root, "deploy", "overlays", "cert-manager"))
	require.Zero(t, rendered.Code, rendered.Stderr)
	var wanted []string
	for manifest := range strings.SplitSeq(rendered.Stdout, "\n---\n") {
		var object metav1.TypeMeta
		require.NoError(t, yaml.Unmarshal([]byte(manifest), &object))
		switch object.GroupVersionKind().Group {
		case certmanager.GroupName, rbacv1.GroupName:
			wanted = append(wanted, manifest)
		}
	}
	got := plane.KubectlWith(strings.Join(wanted, "\n---\n"), "apply", "--server-side", "--force-conflicts", "-f", "-")
	require.Zero(t, got.Code, got.Stderr)
}

// deleteCertificates deletes the Certificate and its requests, as the garbage
// collector of a cluster would: an old request blocks that of the next
// Certificate.
func deleteCertificates(t *testing.T) {
	t.Helper()
	for _, objects := range [][]string{{"certificate", servingName}, {"certificaterequests", "--all"}, {"secret", servingName + "-cert"}} {
		got := plane.Kubectl(append([]string{"delete", "-n", server.Namespace}, objects...)...)
		require.Zero(t, got.Code, got.Stderr)
	}
}

func TestServerReportsWaitingForCertManager(t *testing.T) {
	_, err := server.Install(t.Context(), plane)
	require.NoError(t, err)
	applyOverlay(t)
	awaitIssued(t, servingName, 1)
	deleteCertificates(t)
	dir := t.TempDir()
	s, health := startUnready(t, "--certificates=cert-manager", "--cert-dir="+dir)

	s.says(t, dir+"/tls.crt: no such file or directory")
	applyOverlay(t)
	secret := awaitIssued(t, servingName, 1)
	for _, kind := range []string{"validatingwebhookconfiguration", "mutatingwebhookconfiguration"} {
		got := plane.Kubectl("get", kind+"/overrule")
		assert.Contains(t, got.Stderr, "not found", "a server without a certificate registers no webhooks")
	}
	volume.Mount(t, dir, secret)

	wait := process.Wait{Limit: env.Patience, Pause: env.Poll, Problem: "it is not ready"}
	require.NoError(t, s.Until(t.Context(), wait, process.OK("http://"+health+"/readyz?verbose")))
	awaitInjected(t, secret[cmmeta.TLSCAKey])
}

// waitingServer is a server that is not ready yet.
type waitingServer struct{ *process.Process }

func (w waitingServer) says(t *testing.T, line string) {
	t.Helper()
	soon(t, func() bool { return strings.Contains(w.Log(), line) }, func() string { return "the server does not say " + line + ":\n" + w.Log() })
}

// startUnready runs a server and does not wait. It also returns the address of
// its health checks.
func startUnready(t *testing.T, flags ...string) (waitingServer, string) {
	t.Helper()
	root, err := env.Repository(t.Context())
	require.NoError(t, err)
	account, err := plane.ServiceAccount(t.Context(), server.Namespace, server.Name)
	require.NoError(t, err)
	port, err := env.FreePort(t.Context())
	require.NoError(t, err)
	health := fmt.Sprintf("127.0.0.1:%d", port)
	p, err := process.Start(process.Spec{Path: filepath.Join(root, "bin", "overrule"), Args: append(flags,
		"--kubeconfig="+account.Kubeconfig, "--drain-period=0s", "--webhook-bind-address=127.0.0.1:0", "--peer-bind-address=127.0.0.1:0",
		"--metrics-bind-address=0", "--health-bind-address="+health,
	)})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, p.Stop())
		unregister(t)
	})
	return waitingServer{p}, health
}
