package deploy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

func TestOverlayOfTheInstallPageSetsTheImage(t *testing.T) {
	deploy := filepath.Join(t.TempDir(), "deploy")
	require.NoError(t, os.CopyFS(deploy, os.DirFS(filepath.Join(root, "deploy"))))
	mine := filepath.Join(deploy, "overlays", "mine")
	require.NoError(t, os.Mkdir(mine, 0o700))
	overlay := fenced(t, "kind: Kustomization")
	require.NoError(t, os.WriteFile(filepath.Join(mine, "kustomization.yaml"), []byte(overlay), 0o600))

	rendered := find[appsv1.Deployment](t, renderPath(t, mine), "Deployment", "overrule")
	container := rendered.Spec.Template.Spec.Containers[0]
	assert.Equal(t, "REGISTRY/overrule:v0.1.0", container.Image)
	assert.Contains(t, container.Args, "--enforcement=warn")
}

func TestClusterRoleOfTheInstallPageIsGathered(t *testing.T) {
	role := new(rbacv1.ClusterRole)
	require.NoError(t, yaml.UnmarshalStrict([]byte(fenced(t, "kind: ClusterRole")), role))
	reader := find[rbacv1.ClusterRole](t, render(t, "base"), "ClusterRole", "overrule-reader")
	assertSelects(t, &reader.AggregationRule.ClusterRoleSelectors[0], role.Labels)
	assert.Equal(t, readVerbs, role.Rules[0].Verbs)
}

// fenced returns the one YAML block of docs/install.md that contains a text.
func fenced(t *testing.T, text string) string {
	t.Helper()
	var found []string
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(read(t, "docs/install.md"), -1) {
		if strings.Contains(block[1], text) {
			found = append(found, block[1])
		}
	}
	require.Len(t, found, 1, "blocks with %q", text)
	return found[0]
}
