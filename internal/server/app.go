package server

import (
	"fmt"
	"sync"

	"github.com/go-logr/logr"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"overrule.dev/overrule/certs"
	"overrule.dev/overrule/internal/build"
	"overrule.dev/overrule/internal/cache"
	"overrule.dev/overrule/internal/controllers/status"
	"overrule.dev/overrule/internal/coordination"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/inflight"
	"overrule.dev/overrule/internal/rights"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/internal/webhookconfig"
	"overrule.dev/overrule/webhook"
)

// app is the server process: the manager, and the components that it runs.
type app struct {
	options options
	log     logr.Logger
	config  *rest.Config
	client  kubernetes.Interface
	manager manager.Manager
	tracing *tracing
	serving *sync.WaitGroup // held until the last call is answered

	// Components, set by setUp in this order.
	leaderWork   leaderWork
	store        *snapshot.Store
	watcher      *cache.Watcher
	certificates *certProvider
	pathTokens   *certs.PathTokens // nil if the path needs no token
	engine       *effective.Engine
	readers      *rights.Reviewer // its cache is apart from that of the guard
	guard        *guard.Guard
	coordinator  *coordination.Coordinator // nil if disabled
	peerServer   *peerServer               // nil if disabled
	inFlight     *inflight.Log
	webhooks     *webhook.Server
	https        *httpsServer
	probes       *probeServer
	probe        *webhookconfig.Probe
}

// setUp creates the components and adds them to the manager.
func (a *app) setUp() error {
	for _, step := range []func() error{
		a.createCache,
		a.createCertificates,
		a.createGuard,
		a.createCoordination,
		a.createWebhooks,
		a.registerMetrics,
		a.addRefresher,
		a.addHTTPSServer,
		a.addAuditor,
		a.addWebhookProbe,
		a.addWebhookConfig,
		a.addWarningEvents,
		a.addStatusWriter,
		a.addProbes, // last: all readiness checks and warnings are known
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) createCache() (err error) {
	a.store = snapshot.New(cache.Sources...)
	a.watcher, err = cache.New(a.config, a.store, cache.Options{Log: a.log.WithName("watch"), Exempt: a.options.namespace})
	if err != nil {
		return fmt.Errorf("watch the cluster: %w", err)
	}
	return nil
}

func (a *app) createCertificates() error {
	a.certificates = newCertProvider(a.client, a.options, a.log.WithName("certs"))
	if a.options.manageWebhooks || a.options.requirePathToken {
		a.pathTokens = certs.NewPathTokens(a.client.CoreV1(), a.options.namespace, pathSecret, a.log.WithName("path"))
	}
	return nil
}

func (a *app) createGuard() error {
	reviewer, err := newReviewer(a.config, a.watcher)
	if err != nil {
		return err
	}
	if a.readers, err = newReviewer(a.config, a.watcher); err != nil {
		return err
	}
	a.engine = effective.NewEngine()
	a.guard = &guard.Guard{
		Engine: a.engine, ReadLive: a.watcher.ReadLive, Permissions: reviewer, BlastRadius: a.options.blastRadius, MatchLimit: a.options.maxMatches,
	}
	return nil
}

func (a *app) createWebhooks() error {
	a.inFlight = inflight.New(a.store, inflight.Options{ReadStored: a.watcher.ReadStored})
	options := a.options.webhookOptions()
	options.Store, options.Guard, options.Readers, options.InFlight = a.store, a.guard, a.readers, a.inFlight
	options.CheckFresh, options.Await, options.Stored, options.Replica = a.watcher.CheckFresh, a.watcher.Await, a.watcher.Stored, hostname()
	options.Metrics = webhook.NewMetrics(crmetrics.Registry)
	options.Events, options.Tracer, options.Log = a.manager.GetEventRecorder("overrule"), a.tracing.tracer(), a.log.WithName("webhook")
	if a.pathTokens != nil {
		options.Tokens = a.pathTokens
	}
	if a.coordinator != nil {
		options.Coordinator = a.coordinator
	}
	a.webhooks = webhook.New(options)
	return nil
}

// webhookOptions are those that the flags determine.
func (o *options) webhookOptions() webhook.Options {
	out := webhook.Options{
		Enforcement: o.enforcement, Timeout: o.webhookTimeout, IgnoreFailures: o.failurePolicy == admissionregistrationv1.Ignore, Refresh: o.refresh.enabled,
		MaxConcurrent: o.maxConcurrent, MaxQueue: o.maxQueue, MaxBytes: o.maxBytes.Value(), MaxObject: o.maxObjectBytes.Value(),
	}
	if o.coordinated() {
		out.MaxTimeout = o.bounds().MaxTimeout()
	}
	return out
}

func (a *app) registerMetrics() error {
	crmetrics.Registry.MustRegister(
		newStoreCollector(a.store, a.engine, a.log.WithName("metrics")),
		newCacheCollector(a.watcher),
		buildInfo(build.Read()),
	)
	return nil
}

// addHTTPSServer adds the server of the webhooks, and creates the probes that
// report on it.
func (a *app) addHTTPSServer() error {
	o := a.options
	a.https = &httpsServer{
		address: o.webhookAddress, connections: maxConnections, drainPeriod: o.drainPeriod,
		webhooks: a.webhooks, certificates: a.certificates.source,
		runnables: append([]manager.Runnable{a.watcher, a.inFlight}, a.certificates.runnables...), log: a.log.WithName("https"), serving: a.serving,
	}
	a.probes = &probeServer{
		address: o.healthAddress, checks: readinessChecks(a.store, a.certificates.source, a.watcher, a.https),
		warnings: a.certificates.warnings, serving: a.serving, log: a.log.WithName("health"), last: "starting",
	}
	a.serveReplicas()
	addPathTokens(a.https, a.probes, a.pathTokens, o, a.log.WithName("path"))
	a.probes.addWarning("kinds", a.watcher.UnreadableKindsError)
	a.probes.addWarning("timeout", a.webhooks.TimeoutProblem)
	addClientAuth(a.https, a.probes, o, a.log.WithName("callers"))
	crmetrics.Registry.MustRegister(newExpiryCollector(expirySources(a.certificates, a.https.clientAuth)...), a.probes.gauge())
	return a.manager.Add(a.https)
}

func (a *app) addStatusWriter() error {
	client, err := dynamic.NewForConfig(a.config)
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	return a.addLeaderWork(&status.Writer{
		Client: client, Statuses: a.watcher.Statuses, Changed: a.watcher.StatusesChanged(), Log: a.log.WithName("status"),
	})
}

func (a *app) addProbes() error { return a.manager.Add(a.probes) }

// newReviewer returns a Reviewer whose client has no rate limit: admission
// requests wait for its answers.
func newReviewer(cfg *rest.Config, w *cache.Watcher) (*rights.Reviewer, error) {
	client, err := authorizationv1client.NewForConfig(unlimited(cfg))
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	return rights.New(client, w.Resource), nil
}
