package manifest

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
)

// Definition decodes a CustomResourceDefinition.
func (o *Object) Definition() (*policykind.Definition, error) {
	crd, err := o.definition()
	if err != nil {
		return nil, err
	}
	return &policykind.Definition{CustomResourceDefinition: *crd}, nil
}

// Definition returns the definition of a kind in the manifests, nil if there is
// none.
func (k *Kinds) Definition(ref api.PolicyKind) *policykind.Definition {
	crd := k.defined[ref].crd
	if crd == nil {
		return nil
	}
	return &policykind.Definition{CustomResourceDefinition: *crd}
}

// Serves reports whether a definition serves any version. A definition without
// versions is assumed to.
func Serves(d *policykind.Definition) bool {
	return len(d.Spec.Versions) == 0 || serves(&d.CustomResourceDefinition)
}

func serves(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Served })
}
