package server

import (
	"time"

	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"overrule.dev/overrule/internal/cache"
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
	return a.addLeaderWork(registrar)
}

// addWebhookProbe adds what checks that the API server reaches the webhooks.
func (a *app) addWebhookProbe() error {
	a.probe = webhookconfig.NewProbe(a.client, a.options.namespace, a.options.webhookTimeout, a.log.WithName("probe"))
	a.probes.addWarning("calls", a.probe.Problem)
	return a.addLeaderWork(a.probe)
}

func (a *app) newRegistrar(metrics *webhookconfig.Metrics) *webhookconfig.Reconciler {
	return &webhookconfig.Reconciler{
		Client: a.client, Authority: a.certificates.source, Tokens: a.pathTokens,
		ExternalCABundle: a.certificates.externalBundle, EmptyBundleAdvice: a.certificates.missingBundleRemedy,
		Configuration: a.webhookConfiguration(), PolicyResources: evaluatedResources(a.watcher), Changed: a.watcher.Changed(),
		Reached: a.probe.Reached(), Events: a.manager.GetEventRecorder("overrule"), Metrics: metrics, Log: a.log.WithName("registrar"),
	}
}

func (a *app) newInspector() *webhookconfig.Inspector {
	return &webhookconfig.Inspector{
		Client: a.client, Authority: a.certificates.source, Interval: 10 * time.Second, Log: a.log.WithName("inspector"),
		Configuration: a.webhookConfiguration(), PolicyResources: evaluatedResources(a.watcher),
	}
}

// webhookConfiguration is the part of the webhook configurations that the flags
// determine.
func (a *app) webhookConfiguration() webhookconfig.Configuration {
	return webhookconfig.Configuration{
		Name: webhookConfigName, Namespace: a.options.namespace, Service: a.options.service, Port: a.options.servicePort,
		FailurePolicy: a.options.failurePolicy, Timeout: a.options.webhookTimeout,
		Annotations: a.certificates.annotations,
	}
}

// evaluatedResources returns a function that lists the resources whose writes
// the webhooks evaluate. It reports false before discovery is complete.
func evaluatedResources(w *cache.Watcher) func() (webhookconfig.PolicyResources, bool) {
	return func() (webhookconfig.PolicyResources, bool) {
		known := w.Discovered() // before the lists are read: if it is true, they are complete
		out := webhookconfig.PolicyResourcesOf(servedKinds(w.Served()))
		for _, r := range w.ResourcesInOlderVersions() {
			out.Policies = append(out.Policies, webhookconfig.Resource{Group: r.Group, Version: r.Version, Resource: r.Resource, Namespaced: true})
		}
		return out, known
	}
}

func servedKinds(all []cache.Served) []webhookconfig.ServedKind {
	out := make([]webhookconfig.ServedKind, len(all))
	for i, s := range all {
		out[i] = webhookconfig.ServedKind{
			Kind: s.Kind, Scales: s.Scales, Status: s.Status,
			Resource: webhookconfig.Resource{Group: s.Group, Version: s.Version, Resource: s.Resource, Namespaced: s.Namespaced},
		}
	}
	return out
}
