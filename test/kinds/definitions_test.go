//go:build e2e

package kinds

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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
	"agentgateway.dev", "aigateway.envoyproxy.io", "alb.networking.azure.io", "apisix.apache.org",
	"application-networking.k8s.aws", "configuration.konghq.com", "consul.hashicorp.com", "extensions.istio.io",
	"extensions.kuadrant.io", "gateway.envoyproxy.io", "gateway.k8s.aws", "gateway.kgateway.dev",
	"gateway.networking.x-k8s.io", "gateway.nginx.org", "gateway.solo.io", "kuadrant.io", "microgateway.airlock.com",
	"networking.gke.io", "networking.istio.io", "policy.linkerd.io", "security.istio.io", "telemetry.istio.io",
}

// istioKinds are the kinds of Istio that are policies. The others are left out,
// since one of them is another Gateway.
var istioKinds = []string{"RequestAuthentication", "AuthorizationPolicy", "Telemetry", "WasmPlugin", "TrafficExtension", "EnvoyFilter"}

// install installs the CRDs of all kinds in addition to those of every test
// control plane.
func install(ctx context.Context, e *env.Env) error {
	root, err := env.Repository(ctx)
	if err != nil {
		return err
	}
	paths, err := moduleCRDs(ctx, root, e.File("istio.yaml"))
	if err != nil {
		return err
	}
	rest, err := vendorCRDs(root)
	if err != nil {
		return err
	}
	file := e.File("vendors.yaml")
	if err := os.WriteFile(file, bytes.Join(rest, []byte("\n---\n")), 0o600); err != nil {
		return err
	}
	return e.InstallCRDs(append(paths, file)...)
}

// moduleCRDs returns the files and folders of the CRDs that are in Go modules; those of
// Istio's policies are written to a file.
func moduleCRDs(ctx context.Context, root, selected string) ([]string, error) {
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
	}, nil
}

// selectKinds copies the CRDs of the named kinds from one file to another.
func selectKinds(file string, kinds []string, to string) error {
	crds, err := readCRDs(file)
	if err != nil {
		return err
	}
	var out [][]byte
	for _, crd := range crds {
		if slices.Contains(kinds, crd.Spec.Names.Kind) {
			out = append(out, crd.document)
		}
	}
	if len(out) != len(kinds) {
		return fmt.Errorf("%s has %d CRDs of the kinds %v, not one of each", file, len(out), kinds)
	}
	return os.WriteFile(to, bytes.Join(out, []byte("\n---\n")), 0o600)
}

// crd is a CRD and the document that it was read from.
type crd struct {
	apiextensionsv1.CustomResourceDefinition
	document []byte
}

// readCRDs reads the CRDs of files, which may be templates of a chart: lines with
// expressions, which are in metadata and descriptions, are left out.
func readCRDs(files ...string) ([]crd, error) {
	var out []crd
	for _, file := range files {
		data, err := os.ReadFile(filepath.Clean(file))
		if err != nil {
			return nil, err
		}
		for document := range bytes.SplitSeq(expressions.ReplaceAll(data, nil), []byte("\n---\n")) {
			one := crd{document: document}
			if err := yaml.Unmarshal(document, &one.CustomResourceDefinition); err != nil {
				return nil, fmt.Errorf("read the CRDs of %s: %w", file, err)
			}
			if one.Kind == "CustomResourceDefinition" {
				out = append(out, one)
			}
		}
	}
	return out, nil
}

var expressions = regexp.MustCompile(`(?m)^.*\{\{.*\n`)

// vendorCRDs returns the documents of the CRDs that are in no Go module: the real ones, and
// stand-ins for those that are not there.
func vendorCRDs(root string) ([][]byte, error) {
	standins, real, err := standinsAndReal(root)
	if err != nil {
		return nil, err
	}
	if len(real) == 0 {
		fmt.Fprintf(os.Stderr, "no real CRDs in %s: the tests run on the stand-ins of examples/standins\n", realFolder(root))
	}
	out := make([][]byte, len(standins))
	for i, s := range standins {
		out[i] = s.document
		if r, ok := real[s.Name]; ok {
			out[i] = r.document
		}
	}
	return out, nil
}

// realFolder is the folder of the real CRDs, of which the repository has no copy: it has one
// folder for each implementation.
func realFolder(root string) string {
	return cmp.Or(os.Getenv("OVERRULE_CRDS"), filepath.Join(root, "..", "shared", "crds"))
}

// standinsAndReal returns the stand-ins of examples/standins, and by name the real CRDs; none
// if their folder does not exist.
func standinsAndReal(root string) ([]crd, map[string]crd, error) {
	files, err := filepath.Glob(filepath.Join(root, "examples", "standins", "*.yaml"))
	if err != nil {
		return nil, nil, err
	}
	standins, err := readCRDs(files...)
	if err != nil {
		return nil, nil, err
	}
	if files, err = filepath.Glob(filepath.Join(realFolder(root), "*", "*.yaml")); err != nil {
		return nil, nil, err
	}
	crds, err := readCRDs(files...)
	if err != nil {
		return nil, nil, err
	}
	real := map[string]crd{}
	for _, one := range crds {
		real[one.Name] = one
	}
	return standins, real, nil
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
