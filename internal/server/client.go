package server

import (
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// kubeconfigUsage is the help of --kubeconfig, which all commands have.
const kubeconfigUsage = "path of a kubeconfig (default: $KUBECONFIG, else ~/.kube/config, else the in-cluster configuration)"

// loadRESTConfig returns the client configuration of a kubeconfig or, without one, of the
// first of $KUBECONFIG, ~/.kube/config and the in-cluster configuration that exists.
func loadRESTConfig(kubeconfig string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	rules.WarnIfAllMissing = false // the error reports it
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w; set --kubeconfig, or $KUBECONFIG to a file that defines a cluster", err)
	}
	return cfg, nil
}

// unlimited returns a configuration of clients without a rate limit.
func unlimited(cfg *rest.Config) *rest.Config {
	out := rest.CopyConfig(cfg)
	out.QPS, out.RateLimiter = -1, nil
	return out
}

// http2Pings are the environment variables by which client-go configures HTTP/2
// health checks: after how many idle seconds it pings a connection, and after how
// many it closes one that does not respond. With client-go's defaults a dead
// watch is noticed after 45 seconds.
var http2Pings = map[string]string{
	"HTTP2_READ_IDLE_TIMEOUT_SECONDS": "5",
	"HTTP2_PING_TIMEOUT_SECONDS":      "3",
}

// configureHTTP2Pings makes client-go notice dead connections to the API server
// within seconds, unless the environment sets other values. Call it before the
// first client is created.
func configureHTTP2Pings() error {
	var errs []error
	for name, seconds := range http2Pings {
		if _, set := os.LookupEnv(name); !set {
			errs = append(errs, os.Setenv(name, seconds))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("configure HTTP/2 health checks of API server connections: %w", err)
	}
	return nil
}
