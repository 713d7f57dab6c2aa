package manifest

import (
	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
)

// Definition reads a CustomResourceDefinition.
func (o *Object) Definition() (*policykind.Definition, error) {
	crd, err := o.definition()
	if err != nil {
		return nil, err
	}
	return &policykind.Definition{CustomResourceDefinition: *crd}, nil
}

// Definition returns the definition of a kind, nil if there is none among the
// manifests.
func (k *Kinds) Definition(ref api.PolicyKind) *policykind.Definition {
	crd := k.defined[ref].crd
	if crd == nil {
		return nil
	}
	return &policykind.Definition{CustomResourceDefinition: *crd}
}

// Serves reports whether the kind of a definition is served in any version. One
// that names none is taken to be.
func Serves(d *policykind.Definition) bool {
	for _, v := range d.Spec.Versions {
		if v.Served {
			return true
		}
	}
	return len(d.Spec.Versions) == 0
}
