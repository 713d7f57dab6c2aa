package server

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cache"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/webhookconfig"
)

func TestServicesAreEvaluatedForDependentKinds(t *testing.T) {
	service := api.TargetKind{Kind: "Service"}
	route := api.TargetKind{Group: api.GatewayGroup, Kind: "HTTPRoute"}
	for name, c := range map[string]struct {
		levels  []api.LevelName
		targets []api.TargetKind
		want    bool
	}{
		"paths that end at backends":          {[]api.LevelName{api.LevelGateway, api.LevelBackend}, nil, true},
		"paths that start at services":        {[]api.LevelName{api.LevelService, api.LevelRoute}, nil, true},
		"policies on a service's namespace":   {[]api.LevelName{api.LevelServiceNamespace}, nil, true},
		"policies of a whole mesh":            {[]api.LevelName{api.LevelMesh}, nil, true},
		"targets that are services":           {[]api.LevelName{api.LevelRoute}, []api.TargetKind{route, service}, true},
		"targets that are routes":             {[]api.LevelName{api.LevelRoute}, []api.TargetKind{route}, false},
		"targets of any kind, as a guess has": {nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			k, err := policykind.Compile(api.PolicyProfileSpec{
				Group: "example.com", Kind: "Paint", Class: api.Inherited, Levels: c.levels,
				Targets: api.ProfileTargets{Fields: []string{"targetRef"}, Kinds: c.targets},
			}, policykind.Cluster)
			require.NoError(t, err)
			got := policyResources([]cache.Served{{Kind: k, Group: "example.com", Version: "v1", Resource: "paints", Namespaced: true, Scales: []string{"v2"}}}, nil, nil)
			assert.Equal(t, webhookconfig.PolicyResources{
				Scales:   []webhookconfig.Resource{{Group: "example.com", Version: "v2", Resource: "paints/scale", Namespaced: true}},
				Policies: []webhookconfig.Resource{{Group: "example.com", Version: "v1", Resource: "paints", Namespaced: true}}, Services: c.want,
				Subresources: []webhookconfig.Resource{
					{Group: "example.com", Version: "*", Resource: "paints/status", Namespaced: true},
					{Group: "example.com", Version: "*", Resource: "paints/scale", Namespaced: true},
				},
			}, got)
		})
	}
	assert.Equal(t, webhookconfig.PolicyResources{}, policyResources(nil, nil, nil))
}

func TestSubresourceVersions(t *testing.T) {
	status := func(has bool) webhookconfig.Resource {
		return subresources(cache.Served{Group: "example.com", Version: "v1", Resource: "paints", Status: has})[0]
	}
	assert.Equal(t, webhookconfig.Resource{Group: "example.com", Version: "v1", Resource: "paints/status"}, status(true))
	assert.Equal(t, webhookconfig.Resource{Group: "example.com", Version: webhookconfig.AllVersions, Resource: "paints/status"}, status(false))
}
