package server

import (
	"context"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cache"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/webhook"
)

// keepWebhooks has the webhook configurations written or, where somebody else
// keeps them, looked at.
func addWebhookConfig(mgr manager.Manager, client kubernetes.Interface, w *cache.Watcher, i *certProvider, p *pathTokens, l *canaryRunner, o options, probes *probeServer, m *webhook.Metrics, log logr.Logger) error {
	if probes.warnings == nil {
		probes.warnings = map[string]func() error{}
	}
	if !o.manageWebhooks {
		inspector := newInspector(client, w, i, p, o, log)
		probes.warnings["webhooks"] = inspector.Problem
		return mgr.Add(inspector)
	}
	registrar := newRegistrar(client, w, i, p, o, log)
	registrar.Events, registrar.Metrics = mgr.GetEventRecorder("overrule"), m
	registrar.Arming, registrar.Wrote = l.registrarArming(), l.webhooksWritten
	probes.warnings["webhooks"] = registrar.Problem
	return mgr.Add(&leaderRegistrar{registrar, i.loadTrusted})
}

func newRegistrar(client kubernetes.Interface, w *cache.Watcher, i *certProvider, p *pathTokens, o options, log logr.Logger) *webhook.Registrar {
	return &webhook.Registrar{
		Client: client, Authority: i.authority, Tokens: p.source, Foreign: i.externalBundle, Untrusted: i.missingBundleRemedy, Changed: w.Changed(), Log: log.WithName("registrar"),
		Configuration: configuration(i, o), Judged: evaluatedResources(w),
	}
}

func newInspector(client kubernetes.Interface, w *cache.Watcher, i *certProvider, p *pathTokens, o options, log logr.Logger) *webhook.Inspector {
	return &webhook.Inspector{
		Client: client, Authority: i.authority, Tokens: p.tokens, Every: 10 * time.Second, Log: log.WithName("inspector"),
		Configuration: configuration(i, o), Judged: evaluatedResources(w),
	}
}

// configuration is what the flags say of the webhook configurations.
func configuration(i *certProvider, o options) webhook.Configuration {
	return webhook.Configuration{
		Name: webhookConfigName, Namespace: o.namespace, Service: o.service, Port: o.servicePort,
		FailurePolicy: o.failurePolicy,
		Annotations:   i.annotations,
	}
}

// judgedOf tells what the policy kinds of a watcher want judged.
func evaluatedResources(w *cache.Watcher) func() (webhook.Evaluated, bool) {
	return func() (webhook.Evaluated, bool) {
		known := w.Discovered() // before they are asked for: once it is so, they are all there
		out := evaluatedKinds(w.Served())
		for _, r := range w.Older() {
			out.Policies = append(out.Policies, webhook.Resource{Group: r.Group, Version: r.Version, Resource: r.Resource, Namespaced: true})
		}
		return out, known
	}
}

// judged returns what the policy kinds that are served want judged.
func evaluatedKinds(kinds []cache.Served) webhook.Evaluated {
	var out webhook.Evaluated
	for _, s := range kinds {
		out.Policies = append(out.Policies, webhook.Resource{Group: s.Group, Version: s.Version, Resource: s.Resource, Namespaced: s.Namespaced})
		for _, version := range s.Scales {
			out.Scales = append(out.Scales, webhook.Resource{Group: s.Group, Version: version, Resource: s.Resource + "/scale", Namespaced: s.Namespaced})
		}
		out.Subresources = append(out.Subresources, subresources(s)...)
		out.Services = out.Services || dependsOnServices(s.Kind)
	}
	return out
}

// subresources are those that store whole policies of a kind, if they are written in
// another version than the one that is read. The API server converts a status if that
// version has one, too; a scale is the same in all versions.
func subresources(s cache.Served) []webhook.Resource {
	version := s.Version
	if !s.Status {
		version = webhook.AllVersions
	}
	return []webhook.Resource{
		{Group: s.Group, Version: version, Resource: s.Resource + "/status", Namespaced: s.Namespaced},
		{Group: s.Group, Version: webhook.AllVersions, Resource: s.Resource + "/scale", Namespaced: s.Namespaced},
	}
}

// serviceLevels are those whose paths go through Services.
var serviceLevels = []api.LevelName{api.LevelMesh, api.LevelServiceNamespace, api.LevelService, api.LevelBackend}

// onServices reports whether policies of a kind depend on Services. A profile
// that lists no target kinds leaves them open, which is no wish for Services.
func dependsOnServices(k *policykind.Kind) bool {
	return slices.ContainsFunc(serviceLevels, k.Has) ||
		len(k.Targets.Kinds) > 0 && k.MayTarget(api.PolicyKind{Kind: gateway.KindService})
}

// successor is a registrar that learns what was published before it leads: the
// replica that led may have had other files.
type leaderRegistrar struct {
	*webhook.Registrar
	loadTrusted func(context.Context)
}

// Start implements manager.Runnable.
func (s *leaderRegistrar) Start(ctx context.Context) error {
	if s.loadTrusted != nil {
		s.loadTrusted(ctx)
	}
	return s.Registrar.Start(ctx)
}
