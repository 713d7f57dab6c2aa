package server

import (
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cache"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/webhookconfig"
)

// keepWebhooks has the webhook configurations written or, where somebody else
// keeps them, looked at.
func keepWebhooks(mgr manager.Manager, client kubernetes.Interface, w *cache.Watcher, i *identity, p *secretPath, l *lookout, o options, probes *health, m *webhookconfig.Metrics, log logr.Logger) error {
	if probes.notes == nil {
		probes.notes = map[string]func() error{}
	}
	if !o.manageWebhooks {
		inspector := newInspector(client, w, i, p, o, log)
		probes.notes["webhooks"] = inspector.Problem
		return mgr.Add(inspector)
	}
	registrar := newRegistrar(client, w, i, p, o, log)
	registrar.Events, registrar.Metrics = mgr.GetEventRecorder("overrule"), m
	registrar.Arming, registrar.OnWrite = l.arming(), l.wrote
	probes.notes["webhooks"] = registrar.Problem
	return mgr.Add(&successor{registrar, i.recall})
}

func newRegistrar(client kubernetes.Interface, w *cache.Watcher, i *identity, p *secretPath, o options, log logr.Logger) *webhookconfig.Reconciler {
	return &webhookconfig.Reconciler{
		Client: client, Authority: i.authority, Tokens: p.source, ExternalCABundle: i.foreign, EmptyBundleAdvice: i.untrusted, Changed: w.Changed(), Log: log.WithName("registrar"),
		Configuration: configuration(i, o), PolicyResources: judgedOf(w),
	}
}

func newInspector(client kubernetes.Interface, w *cache.Watcher, i *identity, p *secretPath, o options, log logr.Logger) *webhookconfig.Inspector {
	return &webhookconfig.Inspector{
		Client: client, Authority: i.authority, Tokens: p.tokens, Interval: 10 * time.Second, Log: log.WithName("inspector"),
		Configuration: configuration(i, o), PolicyResources: judgedOf(w),
	}
}

// configuration is what the flags say of the webhook configurations.
func configuration(i *identity, o options) webhookconfig.Configuration {
	return webhookconfig.Configuration{
		Name: configurations, Namespace: o.namespace, Service: o.service, Port: o.servicePort,
		FailurePolicy: o.failurePolicy,
		Annotations:   i.annotations,
	}
}

// judgedOf tells what the policy kinds of a watcher want judged.
func judgedOf(w *cache.Watcher) func() (webhookconfig.PolicyResources, bool) {
	return func() (webhookconfig.PolicyResources, bool) {
		known := w.Discovered() // before they are asked for: once it is so, they are all there
		out := judged(w.Served())
		for _, r := range w.Older() {
			out.Policies = append(out.Policies, webhookconfig.Resource{Group: r.Group, Version: r.Version, Resource: r.Resource, Namespaced: true})
		}
		return out, known
	}
}

// judged returns what the policy kinds that are served want judged.
func judged(kinds []cache.Served) webhookconfig.PolicyResources {
	var out webhookconfig.PolicyResources
	for _, s := range kinds {
		out.Policies = append(out.Policies, webhookconfig.Resource{Group: s.Group, Version: s.Version, Resource: s.Resource, Namespaced: s.Namespaced})
		for _, version := range s.Scales {
			out.Scales = append(out.Scales, webhookconfig.Resource{Group: s.Group, Version: version, Resource: s.Resource + "/scale", Namespaced: s.Namespaced})
		}
		out.Subresources = append(out.Subresources, subresources(s)...)
		out.Services = out.Services || onServices(s.Kind)
	}
	return out
}

// subresources are those that store whole policies of a kind, if they are written in
// another version than the one that is read. The API server converts a status if that
// version has one, too; a scale is the same in all versions.
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

// serviceLevels are those whose paths go through Services.
var serviceLevels = []api.LevelName{api.LevelMesh, api.LevelServiceNamespace, api.LevelService, api.LevelBackend}

// onServices reports whether policies of a kind depend on Services. A profile
// that lists no target kinds leaves them open, which is no wish for Services.
func onServices(k *policykind.Kind) bool {
	return slices.ContainsFunc(serviceLevels, k.Has) ||
		len(k.Targets.Kinds) > 0 && k.MayTarget(api.PolicyKind{Kind: gateway.KindService})
}
