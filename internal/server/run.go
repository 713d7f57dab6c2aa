package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-logr/logr"
	"go.uber.org/zap/zapcore"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"overrule.dev/overrule/certs"
	"overrule.dev/overrule/internal/build"
	"overrule.dev/overrule/internal/cache"
	"overrule.dev/overrule/internal/controllers/status"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/inflight"
	"overrule.dev/overrule/internal/rights"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/internal/webhookconfig"
	"overrule.dev/overrule/webhook"
)

// run serves until ctx ends.
func run(ctx context.Context, o options) error {
	log := newLogger(o)
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	if err := pingAPIServer(); err != nil {
		return err
	}
	limitMemory(ctx, log.WithName("memory"), memlimit.FromCgroup)
	built := build.Read()
	cfg, err := clusterOf(o.kubeconfig)
	if err != nil {
		return err
	}
	cfg.UserAgent = "overrule/" + built.Version
	traces := newTracing(ctx, o.namespace, log.WithName("traces"))
	defer traces.end(ctx)
	traces.follow(cfg)
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	mgr, err := newManager(cfg, o, log)
	if err != nil {
		return err
	}
	var serving sync.WaitGroup
	if err := assemble(mgr, cfg, client, traces, o, &serving, log); err != nil {
		return err
	}
	log.Info("starting", "version", built.Version, "revision", built.Revision, "namespace", o.namespace, "enforcement", o.enforcement, "failurePolicy", o.failurePolicy)
	err = mgr.Start(ctx)
	serving.Wait() // a leader that loses its lease ends its manager at once, with calls under way
	return err
}

func newManager(cfg *rest.Config, o options, log logr.Logger) (manager.Manager, error) {
	grace := o.drainPeriod + 20*time.Second
	mgr, err := ctrl.NewManager(cfg, manager.Options{
		Logger:                        log,
		Metrics:                       metricsserver.Options{BindAddress: o.metricsAddress},
		HealthProbeBindAddress:        "0", // see health
		LeaderElection:                o.leaderElect,
		LeaderElectionID:              "overrule",
		LeaderElectionNamespace:       o.namespace,
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       &grace,
	})
	if err != nil {
		return nil, fmt.Errorf("make a manager: %w", err)
	}
	return mgr, nil
}

// assemble puts the parts together.
func assemble(mgr manager.Manager, cfg *rest.Config, client kubernetes.Interface, traces *tracing, o options, serving *sync.WaitGroup, log logr.Logger) error {
	objects := snapshot.New(cache.Sources...)
	watcher, err := cache.New(cfg, objects, cache.Options{Log: log.WithName("watch"), Exempt: o.namespace})
	if err != nil {
		return fmt.Errorf("watch the cluster: %w", err)
	}
	identity, err := newIdentity(cfg, client, o, log.WithName("certs"))
	if err != nil {
		return fmt.Errorf("manage certificates: %w", err)
	}
	path, err := newSecretPath(client, o, log.WithName("path"))
	if err != nil {
		return fmt.Errorf("guard the webhook path: %w", err)
	}
	reviewer, err := newReviewer(cfg, watcher)
	if err != nil {
		return err
	}
	engine := effective.NewEngine()
	judges := &guard.Guard{
		Engine: engine, Live: watcher.Live, Kinds: watcher, Rights: reviewer, BlastRadius: o.blastRadius,
	}
	hooks := webhook.New(webhook.Options{
		Store: objects, Enforcement: o.enforcement,
		Guard: judges, InFlight: inflight.New(objects, inflight.Options{}),
		MaxConcurrent: o.maxConcurrent, MaxQueue: o.maxQueue, MaxBytes: o.maxBytes.Value(), MaxObject: o.maxObjectBytes.Value(),
		Current: watcher.Current, Await: watcher.Await, Stored: watcher.Stored, Replica: replica(),
		Metrics: webhook.NewMetrics(crmetrics.Registry),
		Tokens:  path.tokens,
		Events:  mgr.GetEventRecorder("overrule"),
		Tracer:  traces.tracer(),
		Log:     log.WithName("webhook"),
	})
	sweeper := newSweeper(mgr, objects, judges, log.WithName("sweep"))
	crmetrics.Registry.MustRegister(newHoldings(objects, engine, log.WithName("metrics")), newFreshness(watcher), sweeper, buildInfo(build.Read()))
	if err := addRefresher(mgr, cfg, objects, watcher, engine, o, log.WithName("refresh")); err != nil {
		return err
	}
	door := &httpsServer{
		address: o.webhookAddress, connections: maxConnections, drain: o.drainPeriod, hooks: hooks, certificates: identity.source,
		feeders: []manager.Runnable{watcher, identity.feeder}, log: log.WithName("https"), serving: serving,
	}
	probes := &health{
		address: o.healthAddress, checks: checks(objects, identity.source, watcher, door), notes: identity.notes,
		serving: serving, log: log.WithName("health"), last: "starting",
	}
	path.guard(door, probes)
	probes.note("kinds", watcher.Unread)
	if err := addCallers(door, probes, o, log.WithName("callers")); err != nil {
		return err
	}
	crmetrics.Registry.MustRegister(door.expire(identity), probes.gauge())
	if err := errors.Join(mgr.Add(door), mgr.Add(sweeper)); err != nil {
		return err
	}
	lookout, err := newLookout(mgr, cfg, client, objects, o, log.WithName("canary"))
	if err != nil {
		return err
	}
	if err := lookout.join(mgr, crmetrics.Registry, probes); err != nil {
		return err
	}
	if err := keepWebhooks(mgr, client, watcher, identity, path, lookout, o, probes, webhookconfig.NewMetrics(crmetrics.Registry), log); err != nil {
		return err
	}
	if err := mgr.Add(newTrouble(probes.notes, o.namespace, mgr.GetEventRecorder("overrule"))); err != nil {
		return err
	}
	statuses, err := newStatusWriter(cfg, watcher, log)
	if err != nil {
		return err
	}
	if err := mgr.Add(statuses); err != nil {
		return err
	}
	if !none(o.pprofAddress) {
		if err := mgr.Add(&profiling{address: o.pprofAddress, log: log.WithName("pprof")}); err != nil {
			return err
		}
	}
	return mgr.Add(probes)
}

// newReviewer asks over connections without a limit of their own: a queue in
// here would hold back what someone's write waits for.
func newReviewer(cfg *rest.Config, w *cache.Watcher) (*rights.Reviewer, error) {
	own := rest.CopyConfig(cfg)
	own.QPS, own.RateLimiter = -1, nil
	client, err := authorizationv1client.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return rights.New(client, w.Resource), nil
}

func newStatusWriter(cfg *rest.Config, w *cache.Watcher, log logr.Logger) (*status.Writer, error) {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	return &status.Writer{
		Client: client, Profiles: w.ProfileStatuses, Constraints: w.ConstraintStatuses,
		Changed: w.StatusesChanged(), Log: log.WithName("status"),
	}, nil
}

// checks make the server ready once it can judge and be trusted, and as long
// as its picture of the cluster is kept up to date.
func checks(s *snapshot.Store, c certs.Source, w *cache.Watcher, d *httpsServer) map[string]healthz.Checker {
	return map[string]healthz.Checker{
		"caches": func(*http.Request) error {
			if _, ready := s.View(); !ready {
				return fmt.Errorf("not listed yet: %v", s.Waiting())
			}
			return nil
		},
		"certificate":     c.Healthy,
		"cache-staleness": func(*http.Request) error { return w.Stale() },
		"shutdown":        d.open,
	}
}

func newLogger(o options) logr.Logger {
	level := map[string]int{"error": 2, "info": 0, "debug": -1}[o.logLevel]
	encoder := zap.JSONEncoder()
	if o.logFormat == "text" {
		encoder = zap.ConsoleEncoder()
	}
	return zap.New(encoder, zap.Level(zapLevel(level)), zap.StacktraceLevel(zapcore.DPanicLevel),
		func(z *zap.Options) { z.TimeEncoder = zapcore.RFC3339NanoTimeEncoder })
}
