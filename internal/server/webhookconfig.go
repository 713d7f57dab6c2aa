package server

import (
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"overrule.dev/overrule/internal/cache"
	"overrule.dev/overrule/internal/webhookconfig"
)

// addWebhookConfig adds to the manager what writes the webhook configurations or,
// with --manage-webhooks=false, what compares them with what the server needs.
func (a *app) addWebhookConfig() error {
	registrar := &webhookconfig.Reconciler{
		Client: a.client, Static: !a.options.manageWebhooks, Authority: a.certificates.source,
		ExternalCABundle: a.certificates.externalBundle, EmptyBundleAdvice: a.certificates.missingBundleRemedy,
		Configuration: a.webhookConfiguration(), PolicyResources: evaluatedResources(a.watcher), Changed: a.watcher.Changed(),
		Events: a.manager.GetEventRecorder("overrule"), Repairs: webhookconfig.NewRepairs(crmetrics.Registry), Log: a.log.WithName("registrar"),
	}
	a.probes.addWarning("webhooks", registrar.Problem)
	if registrar.Static {
		return a.manager.Add(registrar)
	}
	registrar.Tokens, registrar.Reached = a.pathTokens, a.probe.Reached()
	return a.addLeaderWork(registrar)
}

// addWebhookProbe adds what checks that the API server reaches the webhooks.
func (a *app) addWebhookProbe() error {
	a.probe = webhookconfig.NewProbe(a.client, a.options.namespace, a.options.webhookTimeout, a.log.WithName("probe"))
	a.probes.addWarning("calls", a.probe.Problem)
	return a.addLeaderWork(a.probe)
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
		return policyResources(w.Served(), w.ResourcesInOlderVersions(), w.Selectable()), known
	}
}
