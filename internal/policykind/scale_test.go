package policykind_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
)

func TestScales(t *testing.T) {
	ignoring := func(content string, fields ...string) *policykind.Kind {
		return compiled(t, func(p *api.PolicyProfileSpec) { p.Content, p.Ignore = content, fields })
	}
	for name, c := range map[string]struct {
		kind *policykind.Kind
		path string
		want []string
	}{
		"content":                           {ignoring(""), ".spec.replicas", []string{"v1"}},
		"a rule of a block":                 {ignoring("", "replicas"), ".spec.overrides.replicas", []string{"v1"}},
		"what is ignored":                   {ignoring("", "replicas"), ".spec.replicas", nil},
		"below what is ignored":             {ignoring("", "pool"), ".spec.pool.replicas", nil},
		"beside what is ignored":            {ignoring("", "pool.size"), ".spec.pool.replicas", []string{"v1"}},
		"what is ignored of deeper content": {ignoring("conf", "replicas"), ".spec.conf.replicas", nil},
		"outside the content":               {ignoring("conf", "replicas"), ".spec.replicas", []string{"v1"}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, c.kind.Scales(map[string]string{"v1": c.path})) })
	}
}

func TestScalePaths(t *testing.T) {
	scale := &apiextensionsv1.CustomResourceSubresources{Scale: &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.a"}}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{
		{Name: "v1", Served: true},
		{Name: "v1beta1", Served: true, Subresources: scale},
		{Name: "v1alpha1", Subresources: scale},
		{Name: "v2", Served: true, Subresources: &apiextensionsv1.CustomResourceSubresources{}},
	}
	assert.Equal(t, map[string]string{"v1beta1": ".spec.a"}, policykind.ScalePaths(crd))
}
