package server

import (
	"context"
	"slices"
	"time"

	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cache"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/webhookconfig"
)

// addWebhookConfig adds to the manager what writes the webhook configurations or,
// with --manage-webhooks=false, what compares them with what the server needs.
func (a *app) addWebhookConfig() error {
	metrics := webhookconfig.NewMetrics(crmetrics.Registry)
	if !a.options.manageWebhooks {
		inspector := a.newInspector()
		a.probes.addWarning("webhooks", inspector.Problem)
		return a.manager.Add(inspector)
	}
	registrar := a.newRegistrar(metrics)
	a.probes.addWarning("webhooks", registrar.Problem)
	return a.manager.Add(&leaderRegistrar{registrar, a.certificates.loadTrusted})
}

func (a *app) newRegistrar(metrics *webhookconfig.Metrics) *webhookconfig.Reconciler {
	return &webhookconfig.Reconciler{
		Client: a.client, Authority: a.certificates.authority, Tokens: a.pathTokens.source,
		ExternalCABundle: a.certificates.externalBundle, EmptyBundleAdvice: a.certificates.missingBundleRemedy,
		Configuration: a.webhookConfiguration(), PolicyResources: evaluatedResources(a.watcher), Changed: a.watcher.Changed(),
		Arming: a.canary.registrarArming(), OnWrite: a.canary.webhooksWritten,
		Events: a.manager.GetEventRecorder("overrule"), Metrics: metrics, Log: a.log.WithName("registrar"),
	}
}

func (a *app) newInspector() *webhookconfig.Inspector {
	return &webhookconfig.Inspector{
		Client: a.client, Authority: a.certificates.authority, Tokens: a.pathTokens.tokens, Interval: 10 * time.Second, Log: a.log.WithName("inspector"),
		Configuration: a.webhookConfiguration(), PolicyResources: evaluatedResources(a.watcher),
	}
}

// webhookConfiguration is the part of the webhook configurations that the flags
// determine.
func (a *app) webhookConfiguration() webhookconfig.Configuration {
	return webhookconfig.Configuration{
		Name: webhookConfigName, Namespace: a.options.namespace, Service: a.options.service, Port: a.options.servicePort,
		FailurePolicy: a.options.failurePolicy,
		Annotations:   a.certificates.annotations,
	}
}

// evaluatedResources returns a function that lists the resources whose writes
// the webhooks evaluate. It reports false before discovery is complete.
func evaluatedResources(w *cache.Watcher) func() (webhookconfig.PolicyResources, bool) {
	return func() (webhookconfig.PolicyResources, bool) {
		known := w.Discovered() // before the lists are read: if it is true, they are complete
		out := evaluatedKinds(w.Served())
		for _, r := range w.ResourcesInOlderVersions() {
			out.Policies = append(out.Policies, webhookconfig.Resource{Group: r.Group, Version: r.Version, Resource: r.Resource, Namespaced: true})
		}
		return out, known
	}
}

// evaluatedKinds returns the resources that must be evaluated for these policy
// kinds.
func evaluatedKinds(kinds []cache.Served) webhookconfig.PolicyResources {
	var out webhookconfig.PolicyResources
	for _, s := range kinds {
		out.Policies = append(out.Policies, webhookconfig.Resource{Group: s.Group, Version: s.Version, Resource: s.Resource, Namespaced: s.Namespaced})
		for _, version := range s.Scales {
			out.Scales = append(out.Scales, webhookconfig.Resource{Group: s.Group, Version: version, Resource: s.Resource + "/scale", Namespaced: s.Namespaced})
		}
		out.Subresources = append(out.Subresources, subresources(s)...)
		out.Services = out.Services || dependsOnServices(s.Kind)
	}
	return out
}

// subresources returns the subresources by which a write in another version than
// the watched one stores a whole policy. The API server converts a status if the
// watched version has a status, too; a scale is the same in all versions.
func subresources(s cache.Served) []webhookconfig.Resource {
	version := s.Version
	if !s.Status {
		version = webhookconfig.AllVersions
	}
	return []webhookconfig.Resource{
		{Group: s.Group, Version: version, Resource: s.Resource + "/status", Namespaced: s.Namespaced},
		{Group: s.Group, Version: webhookconfig.AllVersions, Resource: s.Resource + "/scale", Namespaced: s.Namespaced},
	}
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

// leaderRegistrar is a Registrar that first loads the published CA bundles: the
// previous leader may have had other certificate files.
type leaderRegistrar struct {
	*webhookconfig.Reconciler
	loadTrusted func(context.Context)
}

// Start implements manager.Runnable.
func (r *leaderRegistrar) Start(ctx context.Context) error {
	if r.loadTrusted != nil {
		r.loadTrusted(ctx)
	}
	return r.Reconciler.Start(ctx)
}
