//go:build integration

package helm_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// An older chart has a CRD with fewer fields.
func (c *cluster) upgradesCRDs(t *testing.T) {
	t.Helper()
	const short, name = "pcon", "policyconstraints.overrule.dev"
	client, err := apiextensions.NewForConfig(c.config)
	require.NoError(t, err)
	crds := client.ApiextensionsV1().CustomResourceDefinitions()
	shortNames := func() []string {
		crd, err := crds.Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		return crd.Spec.Names.ShortNames
	}
	assert.Equal(t, []string{short}, shortNames(), "it was kept")
	c.install(t, olderChart(t, "    - "+short+"\n", "    - older\n"), nil)
	assert.Equal(t, []string{"older"}, shortNames())
	c.upgrade(t, load(t), nil)
	assert.Equal(t, []string{short}, shortNames())
}

// olderChart returns the chart with a text in its CRDs replaced.
func olderChart(t *testing.T, text, before string) *chart.Chart {
	t.Helper()
	out, changed := load(t), 0
	for _, file := range out.Files {
		if strings.HasPrefix(file.Name, "files/crds/") && strings.Contains(string(file.Data), text) {
			file.Data = []byte(strings.ReplaceAll(string(file.Data), text, before))
			changed++
		}
	}
	require.Equal(t, 1, changed)
	return out
}
