package server

import (
	"errors"
	"fmt"
	"os"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// kubeconfigUsage is that of the flag that all commands have.
const kubeconfigUsage = "path of a kubeconfig (default: that of $KUBECONFIG, else the cluster that it runs in, else ~/.kube/config)"

// clusterOf returns how to reach the cluster that a kubeconfig names. Without one it
// is that of $KUBECONFIG, of the pod that this runs in, or of ~/.kube/config, the
// first that there is: a pod's own comes before what its home happens to have.
func loadRESTConfig(kubeconfig string) (*rest.Config, error) {
	var inClusterErr error
	if kubeconfig == "" && os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" {
		var cfg *rest.Config
		if cfg, inClusterErr = rest.InClusterConfig(); inClusterErr == nil {
			return cfg, nil
		}
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	rules.WarnIfAllMissing = false // the error tells it
	cfg, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{}).ClientConfig()
	switch {
	case err == nil:
		return cfg, nil
	case kubeconfig != "":
		return nil, fmt.Errorf("read kubeconfig %q: %w", kubeconfig, err)
	case !clientcmd.IsEmptyConfig(err):
		return nil, fmt.Errorf("read kubeconfig %q: %w", rules.Precedence, err)
	case inClusterErr != nil:
		return nil, fmt.Errorf("find a cluster: there is none in %q, nor that of a pod (%w): give --kubeconfig, or set $KUBECONFIG", rules.Precedence, inClusterErr)
	default:
		return nil, fmt.Errorf("find a cluster: $KUBECONFIG is %q, and there is none in it: give --kubeconfig, or set $KUBECONFIG to a file that names one", rules.Precedence)
	}
}

// pings are the variables by which client-go says when a silent connection is
// pinged, and when it is dead without an answer, in seconds. Its own values let a
// dead watch pass for a live one for three quarters of a minute.
var http2Pings = map[string]string{
	"HTTP2_READ_IDLE_TIMEOUT_SECONDS": "5",
	"HTTP2_PING_TIMEOUT_SECONDS":      "3",
}

// pingAPIServer has dead connections to the API server noticed within seconds,
// unless the environment says otherwise. It comes before the first client.
func configureHTTP2Pings() error {
	var errs []error
	for name, seconds := range http2Pings {
		if _, set := os.LookupEnv(name); !set {
			errs = append(errs, os.Setenv(name, seconds))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("have connections to the API server pinged: %w", err)
	}
	return nil
}
