package policykind

import (
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	api "overrule.dev/overrule/api/v1alpha1"
)

// LabelPolicy is the label by which a CRD says that it is a policy kind
// (GEP-713).
const LabelPolicy = api.GatewayGroup + "/policy"

var (
	defaultsNames  = []string{"defaults", "default"}
	overridesNames = []string{"overrides", "override"}
)

// FromLabel guesses a profile from the policy label of a CRD (SEMANTICS
// section 5): stanzas of defaults and overrides are blocks, the rest but the
// target references is bare, and each top-level field is a rule. ok is false
// without a label that says so.
func FromLabel(crd *apiextensionsv1.CustomResourceDefinition) (p Profile, ok bool) {
	p = Profile{
		Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind,
		Targets: Targets{Fields: []string{"targetRef", "targetRefs"}},
	}
	switch strings.ToLower(crd.Labels[LabelPolicy]) {
	case "inherited":
		p.Class = Inherited
	case "direct":
		p.Class = Direct
	case "true":
		p.Class = Direct
		if specHas(crd, defaultsNames) || specHas(crd, overridesNames) {
			p.Class = Inherited
		}
	default:
		return Profile{}, false
	}
	if p.Class == Inherited {
		p.Blocks = Blocks{
			Defaults: defaultsNames, Overrides: overridesNames,
			Strategy: Strategy{Field: "strategy", Allowed: []string{"atomic", "merge"}},
		}
	}
	return p, true
}

// specHas reports whether the spec of some served version has one of the
// fields.
func specHas(crd *apiextensionsv1.CustomResourceDefinition, names []string) bool {
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
