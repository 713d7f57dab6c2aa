package webhookconfig

import (
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
)

// PolicyResources are the resources that are evaluated besides CoreResources, depending
// on the policy kinds.
type PolicyResources struct {
	// Policies are the resources of the known policy kinds, and those of Gateway API
	// that are not served in the version that CoreResources name.
	Policies []Resource
	// Scales are the scale subresources of policy kinds that write a field which is
	// read.
	Scales []Resource
	// Subresources are those by which a write in another version than the one in
	// Policies stores the whole policy as that version has it.
	Subresources []Resource
	// Services is set if policies depend on Services.
	Services bool
}

// ServedKind is a policy kind that is served.
type ServedKind struct {
	Kind *policykind.Kind
	// Resource is the resource of the kind, in the version that is read.
	Resource Resource
	// Scales are the versions in which a scale subresource writes a field that the
	// kind reads.
	Scales []string
	// Status is true if the version that is read has a status subresource.
	Status bool
}

// PolicyResourcesOf returns the resources that must be evaluated for these policy
// kinds.
func PolicyResourcesOf(kinds []ServedKind) PolicyResources {
	var out PolicyResources
	for _, k := range kinds {
		out.Policies = append(out.Policies, k.Resource)
		for _, version := range k.Scales {
			out.Scales = append(out.Scales, k.Resource.subresource("scale", version))
		}
		out.Subresources = append(out.Subresources, k.subresources()...)
		out.Services = out.Services || dependsOnServices(k.Kind)
	}
	return out
}

// subresources returns the subresources by which a write in another version than
// the watched one stores a whole policy. The API server converts a status if the
// watched version has a status, too; a scale is the same in all versions.
func (k ServedKind) subresources() []Resource {
	version := k.Resource.Version
	if !k.Status {
		version = AllVersions
	}
	return []Resource{k.Resource.subresource("status", version), k.Resource.subresource("scale", AllVersions)}
}

func (r Resource) subresource(name, version string) Resource {
	return Resource{r.Group, version, r.Resource + "/" + name, r.Namespaced}
}

// serviceLevels are the levels whose paths go through Services.
var serviceLevels = []api.LevelName{api.LevelMesh, api.LevelServiceNamespace, api.LevelService, api.LevelBackend}

// dependsOnServices reports whether policies of a kind depend on Services: through
// the levels of their paths, or as listed target kinds. A profile without listed
// target kinds may target any, and does not count.
func dependsOnServices(k *policykind.Kind) bool {
	return slices.ContainsFunc(serviceLevels, k.Has) ||
		len(k.Targets.Kinds) > 0 && k.MayTarget(api.PolicyKind{Kind: gateway.KindService})
}
