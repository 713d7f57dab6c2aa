package server

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cache"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/webhookconfig"
)

// policyResources returns the resources that must be evaluated for the policy kinds that
// are served, and for the kinds of Gateway API that are read in an older version.
func policyResources(kinds []cache.Served, older, selectable []schema.GroupVersionResource) webhookconfig.PolicyResources {
	var out webhookconfig.PolicyResources
	for _, k := range kinds {
		out.Policies = append(out.Policies, resourceOf(k, "", k.Version))
		for _, version := range k.Scales {
			out.Scales = append(out.Scales, resourceOf(k, "/scale", version))
		}
		out.Subresources = append(out.Subresources, subresources(k)...)
		out.Services = out.Services || dependsOnServices(k.Kind)
	}
	for _, r := range older {
		out.Policies = append(out.Policies, namespaced(r))
	}
	for _, r := range selectable {
		out.Selectable = append(out.Selectable, namespaced(r))
	}
	return out
}

func namespaced(r schema.GroupVersionResource) webhookconfig.Resource {
	return webhookconfig.Resource{Group: r.Group, Version: r.Version, Resource: r.Resource, Namespaced: true}
}

// subresources returns the subresources by which a write in another version than
// the watched one stores a whole policy. The API server converts a status if the
// watched version has a status, too; a scale is the same in all versions.
func subresources(k cache.Served) []webhookconfig.Resource {
	version := k.Version
	if !k.Status {
		version = webhookconfig.AllVersions
	}
	return []webhookconfig.Resource{resourceOf(k, "/status", version), resourceOf(k, "/scale", webhookconfig.AllVersions)}
}

func resourceOf(k cache.Served, subresource, version string) webhookconfig.Resource {
	return webhookconfig.Resource{Group: k.Group, Version: version, Resource: k.Resource + subresource, Namespaced: k.Namespaced}
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
