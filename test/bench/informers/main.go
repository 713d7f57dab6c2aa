// Command informers is the reference for a server's start: a program that lists
// and watches the same objects with client-go's shared informers, and does
// nothing with them. /readyz reports whether all of them are synced.
//
// Gateways, listener sets and HTTPRoutes are read by the typed informers of
// Gateway API, policies by the dynamic informer, since there are no Go types for
// kinds that are not known in advance.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/gateway-api/pkg/client/clientset/versioned"
	"sigs.k8s.io/gateway-api/pkg/client/informers/externalversions"
)

// options are the flags.
type options struct{ kubeconfig, health, policies string }

func main() {
	var o options
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "path of a kubeconfig")
	flag.StringVar(&o.health, "health-bind-address", "127.0.0.1:0", "address to serve /readyz on (HTTP)")
	flag.StringVar(&o.policies, "policies", "", "resources of policies, as ratelimitpolicies.v1.kuadrant.io, separated by commas")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "informers:", err)
		os.Exit(1)
	}
}

// run lists and watches until ctx ends.
func run(ctx context.Context, o options) error {
	cfg, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return fmt.Errorf("read kubeconfig %q: %w", o.kubeconfig, err)
	}
	cfg.QPS = -1
	informers, err := informersOf(cfg, o.policies)
	if err != nil {
		return err
	}
	var synced atomic.Bool
	served, err := serve(ctx, o.health, &synced)
	if err != nil {
		return err
	}
	waits := make([]cache.DoneChecker, len(informers))
	for i, informer := range informers {
		go informer.RunWithContext(ctx)
		waits[i] = informer.HasSyncedChecker()
	}
	// It does not poll, unlike WaitForCacheSync, which polls every 100 ms.
	synced.Store(cache.WaitFor(ctx, "", waits...))
	return <-served
}

func informersOf(cfg *rest.Config, policies string) ([]cache.SharedIndexInformer, error) {
	gw, err := versioned.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make a client of Gateway API: %w", err)
	}
	untyped, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make a dynamic client: %w", err)
	}
	v1 := externalversions.NewSharedInformerFactory(gw, 0).Gateway().V1()
	out := []cache.SharedIndexInformer{
		v1.Gateways().Informer(), v1.ListenerSets().Informer(), v1.HTTPRoutes().Informer(),
	}
	all := dynamicinformer.NewDynamicSharedInformerFactory(untyped, 0)
	for name := range strings.SplitSeq(policies, ",") {
		resource, _ := schema.ParseResourceArg(name)
		if resource == nil {
			return nil, fmt.Errorf("invalid -policies %q: must be resource.version.group", name)
		}
		out = append(out, all.ForResource(*resource).Informer())
	}
	return out, nil
}

// serve reports on /readyz whether all are synced. The channel receives its
// error, or nil if ctx ended.
func serve(ctx context.Context, address string, synced *atomic.Bool) (<-chan error, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for probes: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !synced.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	s := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	context.AfterFunc(ctx, func() { _ = s.Close() })
	ended := make(chan error, 1)
	go func() {
		err := s.Serve(listener)
		if errors.Is(err, http.ErrServerClosed) {
			err = nil
		}
		ended <- err
	}()
	return ended, nil
}
