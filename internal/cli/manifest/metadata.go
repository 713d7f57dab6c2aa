package manifest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
)

// Annotation returns an annotation of the object, "" if it does not have it.
func (o *Object) Annotation(name string) string { return o.unstructured().GetAnnotations()[name] }

// Owners returns the ownerReferences of the object.
func (o *Object) Owners() []metav1.OwnerReference { return o.unstructured().GetOwnerReferences() }

func (o *Object) unstructured() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: o.content}
}

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
