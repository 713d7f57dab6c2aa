//go:build e2e

package kinds

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"overrule.dev/overrule/test/env"
)

const (
	gatewayAPI = "sigs.k8s.io/gateway-api"
	envoy      = "github.com/envoyproxy/gateway"
	istio      = "istio.io/api"
)

// groups are the groups of the policy kinds, except Kuadrant's, which deploy/base
// lets the server read.
var groups = []string{
	"agentgateway.dev", "aigateway.envoyproxy.io", "consul.hashicorp.com", "extensions.istio.io", "gateway.envoyproxy.io", "gateway.kgateway.dev",
	"gateway.networking.x-k8s.io", "gateway.nginx.org", "gateway.solo.io", "kuadrant.io", "networking.gke.io",
	"networking.istio.io", "security.istio.io", "telemetry.istio.io",
}

// istioKinds are the kinds of Istio that are policies. The others are left out,
// since one of them is another Gateway.
var istioKinds = []string{"RequestAuthentication", "AuthorizationPolicy", "Telemetry", "WasmPlugin", "EnvoyFilter"}

// install installs the CRDs of all kinds in addition to those of every test
// control plane: from the modules that define them, or stand-ins.
func install(ctx context.Context, e *env.Env) error {
	paths, err := definitions(ctx, e.File("istio.yaml"))
	if err != nil {
		return err
	}
	return e.InstallCRDs(paths...)
}

// definitions returns the files and folders of the CRDs; those of Istio's
// policies are written to a file.
func definitions(ctx context.Context, selected string) ([]string, error) {
	root, err := env.Repository(ctx)
	if err != nil {
		return nil, err
	}
	gw, err := env.PinnedModule(ctx, root, gatewayAPI)
	if err != nil {
		return nil, err
	}
	pinned := filepath.Join(root, "test", "kinds", "crds")
	gatewayEnvoy, err := env.PinnedModule(ctx, pinned, envoy)
	if err != nil {
		return nil, err
	}
	mesh, err := env.PinnedModule(ctx, pinned, istio)
	if err != nil {
		return nil, err
	}
	all := filepath.Join(mesh, "kubernetes", "customresourcedefinitions.gen.yaml")
	if err := selectKinds(all, istioKinds, selected); err != nil {
		return nil, err
	}
	return []string{
		filepath.Join(gw, "config", "crd", "experimental", "gateway.networking.x-k8s.io_xbackendtrafficpolicies.yaml"),
		filepath.Join(gatewayEnvoy, "charts", "gateway-helm", "charts", "crds", "crds", "generated"),
		selected,
		filepath.Join(root, "examples", "standins"),
	}, nil
}

// selectKinds copies the CRDs of the named kinds from one file to another.
func selectKinds(file string, kinds []string, to string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the CRDs of %s: %w", istio, err)
	}
	var out [][]byte
	for document := range bytes.SplitSeq(data, []byte("\n---\n")) {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.Unmarshal(document, &crd); err != nil {
			return fmt.Errorf("read the CRDs of %s: %w", file, err)
		}
		if slices.Contains(kinds, crd.Spec.Names.Kind) {
			out = append(out, document)
		}
	}
	if len(out) != len(kinds) {
		return fmt.Errorf("%s has %d CRDs of the kinds %v, not one of each", file, len(out), kinds)
	}
	return os.WriteFile(to, bytes.Join(out, []byte("\n---\n")), 0o600)
}

// grant lets the server read the kinds of the groups, as the docs describe.
func grant(ctx context.Context, e *env.Env) error {
	client, err := kubernetes.NewForConfig(e.Config)
	if err != nil {
		return err
	}
	_, err = client.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{
			Name: "overrule-reader-kinds", Labels: map[string]string{"overrule.dev/aggregate-to-reader": "true"},
		},
		Rules: []rbacv1.PolicyRule{{APIGroups: groups, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}}},
	}, metav1.CreateOptions{})
	return err
}
