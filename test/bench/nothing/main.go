// Command nothing is the reference for Overrule: a webhook server made with
// controller-runtime, as its manual shows, that allows everything. It is ready
// once it serves its metrics.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"os"
	"strconv"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// options are the flags.
type options struct{ webhook, metrics, certificates string }

func main() {
	var o options
	flag.StringVar(&o.webhook, "webhook-bind-address", "127.0.0.1:9443", "address to answer admission reviews on (HTTPS)")
	flag.StringVar(&o.metrics, "metrics-bind-address", "127.0.0.1:8080", "address to serve /metrics on (HTTP)")
	flag.StringVar(&o.certificates, "cert-dir", "", "folder with tls.crt and tls.key")
	flag.Parse()
	ctrl.SetLogger(logr.Discard())
	if err := run(ctrl.SetupSignalHandler(), o); err != nil {
		fmt.Fprintln(os.Stderr, "nothing:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, o options) error {
	host, text, err := net.SplitHostPort(o.webhook)
	if err != nil {
		return fmt.Errorf("invalid -webhook-bind-address: %w", err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("invalid -webhook-bind-address %q: port must be a number: %w", o.webhook, err)
	}
	metrics, err := metricsserver.NewServer(metricsserver.Options{BindAddress: o.metrics}, nil, nil)
	if err != nil {
		return fmt.Errorf("serve metrics: %w", err)
	}
	hooks := webhook.NewServer(webhook.Options{Host: host, Port: port, CertDir: o.certificates})
	for _, path := range []string{"/mutate", "/validate"} { // Overrule's
		hooks.Register(path, &admission.Webhook{Handler: admission.HandlerFunc(allow)})
	}
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error { return hooks.Start(ctx) })
	both.Go(func() error { return metrics.Start(ctx) })
	return both.Wait()
}

func allow(context.Context, admission.Request) admission.Response { return admission.Allowed("") }
