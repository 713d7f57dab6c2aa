package policykind

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	api "overrule.dev/overrule/api/v1alpha1"
)

// KindDefinition is the kind of CustomResourceDefinitions.
var KindDefinition = api.PolicyKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}

// Definition is a CustomResourceDefinition in an admission request. It is not part
// of a snapshot.
type Definition struct {
	apiextensionsv1.CustomResourceDefinition
}

// Ref returns the reference of the definition.
func (d *Definition) Ref() api.Ref {
	return api.Ref{Group: KindDefinition.Group, Kind: KindDefinition.Kind, Name: d.Name}
}

// Defines returns the kind that is defined.
func (d *Definition) Defines() api.PolicyKind {
	return api.PolicyKind{Group: d.Spec.Group, Kind: d.Spec.Names.Kind}
}

// DefinedError is the error of a CustomResourceDefinition whose kind another
// definition already defines.
type DefinedError struct {
	Kind api.PolicyKind
	// By is the name of the definition in use.
	By string
}

// Error implements error.
func (e *DefinedError) Error() string {
	return fmt.Sprintf("%s is already defined by %s, and only the first definition is read", e.Kind, e.By)
}
