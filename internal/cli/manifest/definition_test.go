package manifest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "overrule.dev/overrule/api/v1alpha1"
)

func TestObjectMetadata(t *testing.T) {
	tests := map[string]struct {
		metadata   string
		annotation string
		owners     []metav1.OwnerReference
	}{
		"none":                      {"{name: p}", "", nil},
		"another annotation":        {"{name: p, annotations: {b: two}}", "", nil},
		"the annotation":            {"{name: p, annotations: {a: one, b: two}}", "one", nil},
		"annotations of odd types":  {"{name: p, annotations: [a]}", "", nil},
		"an annotation of odd type": {"{name: p, annotations: {a: 1}}", "", nil},
		"an owner": {
			"{name: p, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: c, uid: u}]}", "",
			[]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "c", UID: "u"}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set, err := Read([]string{"-"}, strings.NewReader("apiVersion: kuadrant.io/v1\nkind: AuthPolicy\nmetadata: "+test.metadata))
			require.NoError(t, err)
			require.Len(t, set.Objects, 1)
			assert.Equal(t, test.annotation, set.Objects[0].Annotation("a"))
			assert.Equal(t, test.owners, set.Objects[0].Owners())
		})
	}
}

func TestDefinitionsOfKinds(t *testing.T) {
	const crd = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: paints.example.com}
spec: {group: example.com, scope: Namespaced, names: {kind: Paint, plural: paints}VERSIONS}
`
	tests := map[string]struct {
		versions string
		serves   bool
	}{
		"versions that are left out are served": {"", true},
		"one that is served":                    {", versions: [{name: v1, served: true}]", true},
		"one of two that is served":             {", versions: [{name: v1, served: false}, {name: v2, served: true}]", true},
		"one that is not":                       {", versions: [{name: v1, served: false}]", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set, err := Read([]string{"-"}, strings.NewReader(strings.Replace(crd, "VERSIONS", test.versions, 1)))
			require.NoError(t, err)
			kinds := NewKinds(nil)
			paint := api.PolicyKind{Group: "example.com", Kind: "Paint"}
			require.NoError(t, kinds.AddDefinition(set.Objects[0]))
			read, err := set.Objects[0].Definition()
			require.NoError(t, err)
			assert.Equal(t, read.CustomResourceDefinition, kinds.Definition("paints.example.com").CustomResourceDefinition)
			assert.Equal(t, paint, read.Defines())
			assert.Equal(t, test.serves, kinds.DefinitionOf(paint).Served())
		})
	}
	set, err := Read([]string{"-"}, strings.NewReader("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x}\n"))
	require.NoError(t, err)
	_, err = set.Objects[0].Definition()
	assert.ErrorContains(t, err, "spec.names.kind")
}
