package server

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/dynamic"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"overrule.dev/overrule/internal/controllers/annotations"
)

// refresherAccount is the ServiceAccount that annotations are written as. The
// server's own ServiceAccount is not allowed to.
const refresherAccount = "overrule-refresher"

// refreshOptions are the flags that configure the update of stale annotations.
type refreshOptions struct {
	enabled  bool
	affected bool
	qps      float32
}

func (r *refreshOptions) bind(f *pflag.FlagSet) {
	f.BoolVar(&r.enabled, "refresh", false, "update annotations and conditions that a write to another object made stale, as the ServiceAccount "+refresherAccount)
	f.BoolVar(&r.affected, "refresh-affected", true, "with --refresh: set an annotation or condition on objects that policies affect; false removes it")
	f.Float32Var(&r.qps, "refresh-qps", 10, "with --refresh: maximum requests per second to the API server")
}

// addRefresher adds the update of stale annotations, which runs on the leader,
// if --refresh is set. Call it before the store is filled.
func (a *app) addRefresher() error {
	if !a.options.refresh.enabled {
		return nil
	}
	cluster, err := newRefreshAPIServer(a.config, a.options)
	if err != nil {
		return fmt.Errorf("create client for --refresh: %w", err)
	}
	cluster.ServedResource = a.watcher.ServedResource
	r := annotations.New(annotations.Options{Store: a.store, Engine: a.engine, Cluster: cluster, Affected: a.options.refresh.affected, Log: a.log.WithName("refresh")})
	return errors.Join(crmetrics.Registry.Register(r), a.addLeaderWork(r))
}

// newRefreshAPIServer returns a client that impersonates refresherAccount and has
// a rate limit of its own.
func newRefreshAPIServer(cfg *rest.Config, o options) (*annotations.APIServer, error) {
	own := rest.CopyConfig(cfg)
	own.Impersonate = rest.ImpersonationConfig{UserName: serviceaccount.MakeUsername(o.namespace, refresherAccount)}
	own.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(o.refresh.qps, max(1, int(o.refresh.qps)))
	own.WarningHandlerWithContext = rest.NoWarnings{} // the authors of the objects got these warnings
	client, err := dynamic.NewForConfig(own)
	if err != nil {
		return nil, err
	}
	rights, err := authorizationv1client.NewForConfig(own)
	if err != nil {
		return nil, err
	}
	return &annotations.APIServer{Client: client, Rights: rights, User: own.Impersonate.UserName}, nil
}
