package server

import (
	"errors"
	"fmt"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/dynamic"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"overrule.dev/overrule/internal/cache"
	"overrule.dev/overrule/internal/controllers/annotations"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/snapshot"
)

// refresherAccount is the ServiceAccount that marks are written as. The server's own
// may write none.
const refresherAccount = "overrule-refresher"

// refreshing are the flags of what keeps marks fresh.
type refreshOptions struct {
	enabled  bool
	affected bool
	qps      float32
}

func (r *refreshOptions) bind(f *pflag.FlagSet) {
	f.BoolVar(&r.enabled, "refresh", false, "write the annotations of routes and policies again when a write elsewhere made them stale, as the ServiceAccount "+refresherAccount)
	f.BoolVar(&r.affected, "refresh-affected", true, "with --refresh: mark objects that policies affect; false takes these marks away again")
	f.Float32Var(&r.qps, "refresh-qps", 10, "with --refresh: requests a second that it may take, at most")
}

// addRefresher has marks kept fresh, if that is asked for, on the replica that leads.
// The store is not fed yet.
func addRefresher(mgr manager.Manager, cfg *rest.Config, s *snapshot.Store, w *cache.Watcher, e *effective.Engine, o options, log logr.Logger) error {
	if !o.refresh.enabled {
		return nil
	}
	cluster, err := newRefreshAPIServer(cfg, o)
	if err != nil {
		return fmt.Errorf("make a client to refresh with: %w", err)
	}
	cluster.ServedResource = w.ServedResource
	r := annotations.New(annotations.Options{Store: s, Engine: e, Cluster: cluster, Affected: o.refresh.affected, Log: log})
	return errors.Join(crmetrics.Registry.Register(r), mgr.Add(r))
}

// newRefreshCluster speaks as the ServiceAccount that may refresh, within the rate.
func newRefreshAPIServer(cfg *rest.Config, o options) (*annotations.APIServer, error) {
	own := rest.CopyConfig(cfg)
	own.Impersonate = rest.ImpersonationConfig{UserName: serviceaccount.MakeUsername(o.namespace, refresherAccount)}
	own.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(o.refresh.qps, max(1, int(o.refresh.qps)))
	own.WarningHandlerWithContext = rest.NoWarnings{} // what its writes are warned of, their authors were
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
