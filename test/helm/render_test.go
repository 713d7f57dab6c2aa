package helm_test

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/action"
	"helm.sh/helm/v4/pkg/chart/common"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	release "helm.sh/helm/v4/pkg/release/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const (
	deploy    = "../../deploy"
	chartDir  = deploy + "/chart/overrule"
	namespace = "overrule-system"
)

// values are a user's values, with the dots of "helm --set" as levels.
type values map[string]any

// id identifies an object of an installation.
type id struct{ kind, namespace, name string }

// objects are the objects of an installation, as JSON decodes them.
type objects map[id]map[string]any

func load(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.Load(chartDir)
	require.NoError(t, err)
	return c
}

// nested returns the values as "helm --set" nests them.
func (v values) nested() map[string]any {
	out := map[string]any{}
	for path, value := range v {
		at := out
		keys := strings.Split(path, ".")
		for _, key := range keys[:len(keys)-1] {
			if at[key] == nil {
				at[key] = map[string]any{}
			}
			at = at[key].(map[string]any)
		}
		at[keys[len(keys)-1]] = value
	}
	return out
}

func (v values) with(more values) values {
	out := values{}
	maps.Copy(out, v)
	maps.Copy(out, more)
	return out
}

// template runs "helm template".
func template(t *testing.T, namespace string, v values) (*release.Release, error) {
	t.Helper()
	install := action.NewInstall(action.NewConfiguration())
	install.DryRunStrategy = action.DryRunClient
	install.ReleaseName, install.Namespace = "overrule", namespace
	install.KubeVersion = &common.KubeVersion{Version: "v1.36.3", Major: "1", Minor: "36"}
	rendered, err := install.Run(load(t), v.nested())
	if err != nil {
		return nil, err
	}
	return rendered.(*release.Release), nil
}

// table returns the cases of a file of testdata, by name.
func table[Case any](t *testing.T, file string) map[string]Case {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	require.NoError(t, err)
	var out map[string]Case
	require.NoError(t, yaml.Unmarshal(data, &out))
	require.NotEmpty(t, out)
	return out
}

func rendered(t *testing.T, v values) objects {
	t.Helper()
	r, err := template(t, namespace, v)
	require.NoError(t, err)
	return parse(t, r.Manifest)
}

func parse(t *testing.T, manifest string) objects {
	t.Helper()
	out := objects{}
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(manifest), 4096)
	for {
		var o map[string]any
		err := decoder.Decode(&o)
		if errors.Is(err, io.EOF) {
			return out
		}
		require.NoError(t, err)
		if len(o) > 0 {
			out.add(t, o)
		}
	}
}

func (objs objects) add(t *testing.T, o map[string]any) {
	t.Helper()
	u := unstructured.Unstructured{Object: o}
	key := id{u.GetKind(), u.GetNamespace(), u.GetName()}
	require.NotContains(t, objs, key, "rendered twice")
	objs[key] = o
}

// get returns the one object of that kind.
func (objs objects) get(t *testing.T, kind, name string) map[string]any {
	t.Helper()
	for key, o := range objs {
		if key.kind == kind && key.name == name {
			return o
		}
	}
	require.Failf(t, "not rendered", "no %s %s", kind, name)
	return nil
}

// kustomized returns deploy/base with those components.
func kustomized(t *testing.T, components ...string) objects {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "deploy")
	require.NoError(t, os.CopyFS(dir, os.DirFS(deploy)))
	overlay := map[string]any{
		"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": []string{"../../base"},
	}
	for _, c := range components {
		list, _ := overlay["components"].([]string)
		overlay["components"] = append(list, "../../components/"+c)
	}
	content, err := json.Marshal(overlay)
	require.NoError(t, err)
	mine := filepath.Join(dir, "overlays", "mine")
	require.NoError(t, os.Mkdir(mine, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(mine, "kustomization.yaml"), content, 0o600))
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), mine)
	require.NoError(t, err)
	manifest, err := built.AsYaml()
	require.NoError(t, err)
	return parse(t, strings.ReplaceAll(string(manifest), "FILL-IN", bundle))
}
