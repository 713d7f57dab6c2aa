package policykind

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	api "overrule.dev/overrule/api/v1alpha1"
)

// LabelPolicy is the label that marks a CRD as a policy kind (GEP-713).
const LabelPolicy = api.GatewayGroup + "/policy"

var (
	defaultsNames  = []string{"defaults", "default"}
	overridesNames = []string{"overrides", "override"}
)

// FromLabel derives a profile from the policy label of a CRD (SEMANTICS section 5):
// defaults and overrides are blocks, all other fields except the target references
// are bare, and each top-level field is a rule. ok is false if the CRD has no valid
// label.
func FromLabel(crd *apiextensionsv1.CustomResourceDefinition) (p api.PolicyProfileSpec, ok bool) {
	p = api.PolicyProfileSpec{
		Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind,
		Targets: api.ProfileTargets{Fields: []string{"targetRef", "targetRefs"}},
	}
	switch strings.ToLower(crd.Labels[LabelPolicy]) {
	case "inherited":
		p.Class = api.Inherited
	case "direct":
		p.Class = api.Direct
	case "true":
		p.Class = api.Direct
		if specHasField(crd, defaultsNames) || specHasField(crd, overridesNames) {
			p.Class = api.Inherited
		}
	default:
		return api.PolicyProfileSpec{}, false
	}
	if p.Class == api.Inherited {
		p.Blocks = api.ProfileBlocks{Defaults: defaultsNames, Overrides: overridesNames}
		p.Strategy = api.ProfileStrategy{Field: "strategy", Allowed: []api.StrategyName{"atomic", "merge"}}
	}
	return p, true
}

// specHasField reports whether the spec of a served version has one of the fields.
func specHasField(crd *apiextensionsv1.CustomResourceDefinition, names []string) bool {
	for _, v := range crd.Spec.Versions {
		if !v.Served || v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
			continue
		}
		for _, name := range names {
			if _, ok := v.Schema.OpenAPIV3Schema.Properties["spec"].Properties[name]; ok {
				return true
			}
		}
	}
	return false
}
