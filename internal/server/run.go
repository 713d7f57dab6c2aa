package server

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"overrule.dev/overrule/internal/build"
)

// run serves until ctx ends.
func run(ctx context.Context, o options) error {
	log := newLogger(o)
	ctrl.SetLogger(log)
	klog.SetLogger(log)
	if err := configureHTTP2Pings(); err != nil {
		return err
	}
	setMemoryLimit(ctx, log.WithName("memory"), memlimit.FromCgroup)
	built := build.Read()
	cfg, err := loadRESTConfig(o.kubeconfig)
	if err != nil {
		return err
	}
	cfg.UserAgent = "overrule/" + built.Version
	traces := newTracing(ctx, o.namespace, log.WithName("traces"))
	defer traces.shutdown(ctx)
	traces.instrument(cfg)
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("create client: %w", err)
	}
	mgr, err := newManager(cfg, o, log)
	if err != nil {
		return err
	}
	var serving sync.WaitGroup
	a := &app{options: o, log: log, config: cfg, client: client, manager: mgr, tracing: traces, serving: &serving}
	if err := a.setUp(); err != nil {
		return err
	}
	log.Info("starting", "version", built.Version, "revision", built.Revision, "namespace", o.namespace, "enforcement", o.enforcement, "failurePolicy", o.failurePolicy)
	err = mgr.Start(ctx)
	serving.Wait() // an error ends the manager at once, with calls in flight
	return err
}

func newManager(cfg *rest.Config, o options, log logr.Logger) (manager.Manager, error) {
	grace := o.drainPeriod + 20*time.Second
	mgr, err := ctrl.NewManager(cfg, manager.Options{
		Logger:                  log,
		Metrics:                 metricsserver.Options{BindAddress: o.metricsAddress},
		HealthProbeBindAddress:  "0", // see probeServer
		PprofBindAddress:        o.pprofAddress,
		GracefulShutdownTimeout: &grace,
	})
	if err != nil {
		return nil, fmt.Errorf("create manager: %w", err)
	}
	return mgr, nil
}

// hostname is the name of this replica in the audit log and in Events: in a
// cluster, that of its pod. It is empty where the machine has none.
func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}
