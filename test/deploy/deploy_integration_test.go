//go:build integration

package deploy_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"overrule.dev/overrule/test/env"
)

const configurations = "validatingwebhookconfigurations,mutatingwebhookconfigurations"

// The steps build on one another: install, upgrade and uninstall.
func TestInstallUpgradeAndUninstall(t *testing.T) {
	cluster := env.Start(t, env.WithoutCRDs())
	quiet(t, cluster.Kubectl("apply", "--server-side", "-f", folder("base/namespace.yaml")))

	for _, dir := range []string{"base", "overlays/warn"} {
		t.Run("a dry run of "+dir+" is accepted without a warning", func(t *testing.T) {
			quiet(t, cluster.Kubectl("apply", "--server-side", "--dry-run=server", "-k", folder(dir)))
		})
		t.Run("so is "+dir+" itself, and applying it again", func(t *testing.T) {
			quiet(t, cluster.Kubectl("apply", "--server-side", "-k", folder(dir)))
			quiet(t, cluster.Kubectl("apply", "--server-side", "-k", folder(dir)))
		})
	}
	t.Run("the overlay for cert-manager is accepted in a cluster with its CRDs", func(t *testing.T) {
		module, err := env.ModuleFolder(t.Context(), "github.com/cert-manager/cert-manager")
		require.NoError(t, err)
		require.NoError(t, cluster.InstallCRDs(filepath.Join(module, "deploy", "crds")))
		quiet(t, cluster.Kubectl("apply", "--server-side", "--dry-run=server", "-k", folder("overlays/cert-manager")))
	})
	t.Run("the CRD validates profiles", func(t *testing.T) { validatesProfiles(t, cluster) })
	t.Run("the network policy is accepted", func(t *testing.T) {
		quiet(t, cluster.Kubectl("apply", "--server-side", "-k", folder("components/network-policy")))
	})
	t.Run("an upgrade keeps aggregated rules", func(t *testing.T) {
		keepsAggregatedRules(t, cluster)
	})
	t.Run("without its binding the server cannot write webhook configurations", func(t *testing.T) {
		removesWebhookRights(t, cluster)
	})
	t.Run("static webhooks are rejected without a caBundle, and accepted with one", func(t *testing.T) {
		installsStaticWebhooks(t, cluster)
	})
	t.Run("uninstalling in the documented order leaves nothing in the cluster", func(t *testing.T) {
		uninstalls(t, cluster)
	})
}

func TestPodSecurityAdmission(t *testing.T) {
	cluster := env.Start(t)
	quiet(t, cluster.Kubectl("apply", "--server-side", "-k", folder("base")))
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "overrule", Namespace: namespace},
		Spec:       deployment(t, "base").Spec.Template.Spec,
	}

	t.Run("a pod of the Deployment is admitted", func(t *testing.T) {
		quiet(t, cluster.Apply(marshal(t, pod), "--dry-run=server"))
	})
	t.Run("a less restricted pod is not", func(t *testing.T) {
		loose := pod.DeepCopy()
		loose.Spec.Containers[0].SecurityContext.Capabilities = nil
		refused := cluster.Apply(marshal(t, loose), "--dry-run=server")
		assert.NotZero(t, refused.Code)
		assert.Contains(t, refused.Stderr, `violates PodSecurity "restricted:latest"`)
	})
	t.Run("its Deployment results in a warning", func(t *testing.T) {
		const loosen = `[{"op": "remove", "path": "/spec/template/spec/securityContext/runAsNonRoot"}]`
		warned := cluster.Kubectl("patch", "deployment", "overrule", "-n", namespace, "--type=json", "-p", loosen, "--dry-run=server")
		assert.Contains(t, warned.Stderr, `would violate PodSecurity "restricted:latest"`)
	})
}

func keepsAggregatedRules(t *testing.T, cluster *env.Env) {
	t.Helper()
	const gathered = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: overrule-reader}
rules:
- {apiGroups: [example.com], resources: [examplepolicies], verbs: [get]}
`
	quiet(t, cluster.Apply(gathered, "--server-side", "--force-conflicts", "--field-manager=clusterrole-aggregation-controller"))
	quiet(t, cluster.Kubectl("apply", "--server-side", "-k", folder("base")))
	rules := cluster.Kubectl("get", "clusterrole", "overrule-reader", "-o", "jsonpath={.rules[*].resources}")
	assert.JSONEq(t, `["examplepolicies"]`, rules.Stdout)
}

func removesWebhookRights(t *testing.T, cluster *env.Env) {
	t.Helper()
	server := serverAccount(t, cluster)
	const configuration = "validatingwebhookconfigurations.admissionregistration.k8s.io"
	assert.True(t, can(t, server, "create", configuration))
	quiet(t, cluster.Kubectl("delete", "clusterrolebinding", "overrule-webhooks"))
	env.Soon(t, func() bool { return !can(t, server, "create", configuration) }, "the right stays")
	quiet(t, cluster.Kubectl("apply", "--server-side", "-k", folder("base")))
	env.Soon(t, func() bool { return can(t, server, "create", configuration) }, "the right does not come back")
}

func installsStaticWebhooks(t *testing.T, cluster *env.Env) {
	t.Helper()
	dir := folder("overlays/static-webhooks")
	refused := cluster.Kubectl("apply", "--server-side", "-k", dir)
	assert.NotZero(t, refused.Code)
	assert.Contains(t, refused.Stderr, "illegal base64")
	assert.Empty(t, cluster.Kubectl("get", configurations, "-o", "name").Stdout)

	quiet(t, cluster.Kubectl("apply", "--server-side", "-k", dir, "-l", "app.kubernetes.io/component!=webhook-configuration"))

	const bundle = "stands in for the server's certificates"
	quiet(t, cluster.Kubectl("create", "secret", "generic", "overrule-ca", "-n", namespace, "--from-literal=ca-bundle.crt="+bundle))
	ca := cluster.Kubectl("get", "secret", "overrule-ca", "-n", namespace, "-o", `jsonpath={.data.ca-bundle\.crt}`)
	rendered := cluster.Kubectl("kustomize", dir)
	quiet(t, rendered)
	quiet(t, cluster.Apply(strings.ReplaceAll(rendered.Stdout, "FILL-IN", ca.Stdout), "--server-side"))
	stored := cluster.Kubectl("get", configurations, "overrule", "-o", "jsonpath={.items[*].webhooks[*].clientConfig.caBundle}")
	// those of most kinds, of other versions, of system deletions, of Services,
	// of namespaces and of CRDs validate; two mutate
	assert.Equal(t, slices.Repeat([]string{ca.Stdout}, 8), strings.Fields(stored.Stdout))
}

func uninstalls(t *testing.T, cluster *env.Env) {
	t.Helper()
	quiet(t, cluster.Kubectl("apply", "--server-side", "-k", folder("base")))
	quiet(t, cluster.Kubectl("delete", "--ignore-not-found", "clusterrolebinding", "overrule-webhooks"))
	quiet(t, cluster.Kubectl("delete", "--ignore-not-found", configurations, "overrule"))
	// Not waiting: the controllers may not run.
	done := cluster.Kubectl("delete", "--ignore-not-found", "--wait=false", "-k", folder("base"))
	require.Zero(t, done.Code, done.Stderr)

	env.Soon(t, func() bool { // a CRD is deleted once its objects are gone
		cluster.TouchCRDs()
		left := cluster.Kubectl("get", configurations+",clusterroles,clusterrolebindings,customresourcedefinitions", "-o", "name", "-l", "app.kubernetes.io/part-of=overrule")
		return left.Code == 0 && left.Stdout == ""
	}, "something is left")
}

// quiet requires that a command succeeds with nothing on stderr: a warning is a
// failure. kubectl's messages about its rate limit are ignored.
func quiet(t *testing.T, done env.Result) {
	t.Helper()
	require.Zero(t, done.Code, done.Stderr)
	said := slices.DeleteFunc(strings.Split(done.Stderr, "\n"), func(line string) bool {
		return line == "" || strings.Contains(line, "client-side throttling")
	})
	require.Empty(t, said)
}

func folder(name string) string { return filepath.Join(root, "deploy", name) }

func marshal(t *testing.T, object any) string {
	t.Helper()
	raw, err := json.Marshal(object)
	require.NoError(t, err)
	return string(raw)
}
