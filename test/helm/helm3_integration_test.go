//go:build integration

package helm_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// helm3 is the command of Helm 3, which many users still have.
type helm3 struct{ path, kubeconfig, home string }

func buildHelm3(t *testing.T) helm3 {
	t.Helper()
	h := helm3{path: filepath.Join(t.TempDir(), "helm"), home: t.TempDir(), kubeconfig: os.DevNull}
	said, err := exec.CommandContext(t.Context(), "go", "build", "-o", h.path, "helm.sh/helm/v3/cmd/helm").CombinedOutput()
	require.NoError(t, err, "%s", said)
	return h
}

// run runs a command on the chart's release, with values in a file.
func (h helm3) run(t *testing.T, v values, args ...string) (string, error) {
	t.Helper()
	args = append(args, "--namespace", namespace)
	if v != nil {
		content, err := json.Marshal(v.nested())
		require.NoError(t, err)
		file := filepath.Join(t.TempDir(), "values.json")
		require.NoError(t, os.WriteFile(file, content, 0o600))
		args = append(args, "--values", file)
	}
	cmd := exec.CommandContext(t.Context(), h.path, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+h.kubeconfig, "HELM_CACHE_HOME="+h.home, "HELM_CONFIG_HOME="+h.home, "HELM_DATA_HOME="+h.home)
	said, err := cmd.CombinedOutput()
	return string(said), err
}

func (h helm3) must(t *testing.T, v values, args ...string) string {
	t.Helper()
	said, err := h.run(t, v, args...)
	require.NoError(t, err, said)
	return said
}

func TestHelm3RendersLikeHelm4(t *testing.T) {
	h := buildHelm3(t)
	for name, v := range map[string]values{
		"defaults":         {},
		"static and files": static.with(clientCAValues).with(values{"certificates.mode": "files", "createNamespace": true, "networkPolicy.enabled": true}),
		"cert-manager":     {"certificates.mode": "cert-manager", "certificates.issuerRef": map[string]any{"name": "ours"}, "enforcement": "warn", "blastRadiusLimit": 12345678},
		"every pod value":  {"podLabels.a": "b", "priorityClass.create": true, "replicas": 3, "image.digest": ""},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, rendered(t, v), parse(t, h.must(t, v, "template", "overrule", chartDir, "--kube-version", "v1.36.3")))
			assert.Contains(t, h.must(t, v, "lint", "--strict", chartDir), "1 chart(s) linted, 0 chart(s) failed")
		})
	}
	t.Run("rejects what Helm 4 rejects", func(t *testing.T) {
		said, err := h.run(t, values{"replicaCount": 2}, "template", "overrule", chartDir, "--kube-version", "v1.36.3")
		require.Error(t, err)
		assert.Contains(t, said, "replicaCount")
		said, err = h.run(t, values{"certificates.issuerRef.name": "ours"}, "template", "overrule", chartDir, "--kube-version", "v1.36.3")
		require.Error(t, err)
		assert.Contains(t, said, "certificates.issuerRef requires certificates.mode=cert-manager, but the mode is self: change one of the two")
	})
}

// The steps build on one another, as on a cluster.
func TestHelm3InstallsUpgradesRollsBackAndUninstalls(t *testing.T) {
	h := buildHelm3(t)
	c := boot(t)
	h.kubeconfig = c.kubeconfig
	firstFlag := func() string {
		d, err := c.client.AppsV1().Deployments(namespace).Get(t.Context(), "overrule", metav1.GetOptions{})
		require.NoError(t, err)
		return d.Spec.Template.Spec.Containers[0].Args[0]
	}
	assert.Contains(t, h.must(t, values{"enforcement": "warn"}, "install", "overrule", chartDir), "STATUS: deployed")
	c.writeWebhooks(t)
	assert.Equal(t, "--enforcement=warn", firstFlag())
	h.must(t, nil, "upgrade", "overrule", chartDir, "--reset-then-reuse-values", "--set", "enforcement=deny")
	assert.Equal(t, "--enforcement=deny", firstFlag())
	h.must(t, nil, "rollback", "overrule", "1")
	assert.Equal(t, "--enforcement=warn", firstFlag())

	done := c.kubelet(t, func(job *batchv1.Job) bool {
		c.run(t, job)
		assert.True(t, c.deployed(t), "the server runs while the webhooks exist")
		return true
	})
	h.must(t, nil, "uninstall", "overrule", "--timeout", patience.String())
	<-done
	assert.False(t, c.deployed(t))
	assert.Empty(t, c.webhooks(t))
	assert.Empty(t, c.hookLeftovers(t))
}
