//go:build integration

package helm_test

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/action"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/kube"
	release "helm.sh/helm/v4/pkg/release/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// patience is the maximum time of each wait, on a busy machine.
const patience = 2 * time.Minute

// cluster is a real API server without nodes: no pods of a release run.
type cluster struct {
	config     *rest.Config
	client     *kubernetes.Clientset
	kubeconfig string
}

func boot(t *testing.T) *cluster {
	t.Helper()
	off := false
	plane := &envtest.Environment{
		UseExistingCluster:       &off,
		BinaryAssetsDirectory:    cmp.Or(os.Getenv("KUBEBUILDER_ASSETS"), "../../bin/controlplane"),
		ControlPlaneStartTimeout: patience, ControlPlaneStopTimeout: patience,
	}
	config, err := plane.Start()
	require.NoError(t, err, `start etcd and kube-apiserver (to build them: "make controlplane")`)
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Errorf("stop the control plane: %v", err)
		}
	})
	c := &cluster{config: config, kubeconfig: filepath.Join(t.TempDir(), "admin")}
	require.NoError(t, os.WriteFile(c.kubeconfig, plane.KubeConfig, 0o600))
	c.client, err = kubernetes.NewForConfig(config)
	require.NoError(t, err)
	restricted := map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
	_, err = c.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: restricted},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	return c
}

// helm returns the configuration of Helm's actions.
func (c *cluster) helm(t *testing.T) *action.Configuration {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(false)
	ns := namespace
	flags.KubeConfig, flags.Namespace = &c.kubeconfig, &ns
	cfg := action.NewConfiguration()
	require.NoError(t, cfg.Init(flags, namespace, "secret"))
	return cfg
}

func (c *cluster) install(t *testing.T, from *chart.Chart, v values) *release.Release {
	t.Helper()
	install := action.NewInstall(c.helm(t))
	install.ReleaseName, install.Namespace = "overrule", namespace
	install.WaitStrategy, install.Timeout = kube.HookOnlyStrategy, patience
	installed, err := install.RunWithContext(t.Context(), from, v.nested())
	require.NoError(t, err)
	return installed.(*release.Release)
}

func (c *cluster) upgrade(t *testing.T, to *chart.Chart, v values) {
	t.Helper()
	upgrade := action.NewUpgrade(c.helm(t))
	upgrade.Namespace, upgrade.ReuseValues = namespace, true
	upgrade.WaitStrategy, upgrade.Timeout = kube.HookOnlyStrategy, patience
	_, err := upgrade.RunWithContext(t.Context(), "overrule", to, v.nested())
	require.NoError(t, err)
}

func (c *cluster) uninstall(t *testing.T, noHooks bool) error {
	t.Helper()
	uninstall := action.NewUninstall(c.helm(t))
	uninstall.WaitStrategy, uninstall.Timeout, uninstall.DisableHooks = kube.HookOnlyStrategy, patience, noHooks
	_, err := uninstall.Run("overrule")
	return err
}

// kubeconfigFor writes a kubeconfig of a service account of the release.
func (c *cluster) kubeconfigFor(t *testing.T, account string) string {
	t.Helper()
	token, err := c.client.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), account)
	require.NoError(t, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: c.config.Host, CertificateAuthorityData: c.config.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"u": {Token: token.Status.Token}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "x",
	}, path))
	return path
}
