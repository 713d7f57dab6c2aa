package policykind

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	api "overrule.dev/overrule/api/v1alpha1"
)

// KindDefinition is the kind of CustomResourceDefinitions.
var KindDefinition = api.PolicyKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}

// Definition is a CustomResourceDefinition.
type Definition struct {
	apiextensionsv1.CustomResourceDefinition
	// Created is that of Profile.
	Created int64
	// StandIn is set for one that stands in for a definition of a cluster that was not read.
	StandIn bool
}

// Ref returns the reference of the definition.
func (d *Definition) Ref() api.Ref {
	return api.Ref{Group: KindDefinition.Group, Kind: KindDefinition.Kind, Name: d.Name}
}

// Defines returns the kind that is defined.
func (d *Definition) Defines() api.PolicyKind {
	return api.PolicyKind{Group: d.Spec.Group, Kind: d.Spec.Names.Kind}
}

// ReadsLike reports whether stored policies are read the same way by both definitions: by
// their names, scope, versions, schemas without documentation, subresources and conversion.
// Printer columns, metadata, status and the caBundle of a conversion webhook do not matter.
func (d *Definition) ReadsLike(o *Definition) bool {
	return equality.Semantic.DeepEqual(d.reading(), o.reading())
}

// reading returns what of the definition decides how stored policies are read.
func (d *Definition) reading() apiextensionsv1.CustomResourceDefinitionSpec {
	out := apiextensionsv1.CustomResourceDefinitionSpec{
		Group: d.Spec.Group, Scope: d.Spec.Scope, PreserveUnknownFields: d.Spec.PreserveUnknownFields,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: d.Spec.Names.Kind, Plural: d.Spec.Names.Plural},
	}
	for _, v := range d.Spec.Versions {
		version := apiextensionsv1.CustomResourceDefinitionVersion{Name: v.Name, Served: v.Served, Storage: v.Storage, Subresources: v.Subresources}
		if v.Schema != nil {
			version.Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: stripDocs(v.Schema.OpenAPIV3Schema)}
		}
		out.Versions = append(out.Versions, version)
	}
	slices.SortFunc(out.Versions, func(a, b apiextensionsv1.CustomResourceDefinitionVersion) int { return strings.Compare(a.Name, b.Name) })
	if c := d.Spec.Conversion; c != nil && c.Strategy != apiextensionsv1.NoneConverter {
		out.Conversion = c.DeepCopy()
		if w := out.Conversion.Webhook; w != nil && w.ClientConfig != nil {
			w.ClientConfig.CABundle = nil
		}
	}
	return out
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
