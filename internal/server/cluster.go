package server

import (
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
func clusterOf(kubeconfig string) (*rest.Config, error) {
	var noPod error
	if kubeconfig == "" && os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == "" {
		var cfg *rest.Config
		if cfg, noPod = rest.InClusterConfig(); noPod == nil {
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
	case noPod != nil:
		return nil, fmt.Errorf("find a cluster: there is none in %q, nor that of a pod (%w): give --kubeconfig, or set $KUBECONFIG", rules.Precedence, noPod)
	default:
		return nil, fmt.Errorf("find a cluster: $KUBECONFIG is %q, and there is none in it: give --kubeconfig, or set $KUBECONFIG to a file that names one", rules.Precedence)
	}
}
