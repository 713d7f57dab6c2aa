package server

import (
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

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
	client, err := newRefreshClient(a.config, a.options)
	if err != nil {
		return fmt.Errorf("create client for --refresh: %w", err)
	}
	return a.addLeaderWork(annotations.New(annotations.Options{
		Store: a.store, Engine: a.engine, Affected: a.options.refresh.affected, Log: a.log.WithName("refresh"),
		Write: (&annotations.APIServer{Client: client, ServedResource: a.watcher.ServedResource}).Write,
	}))
}

// newRefreshClient returns a client that impersonates refresherAccount and has
// a rate limit of its own.
func newRefreshClient(cfg *rest.Config, o options) (dynamic.Interface, error) {
	own := rest.CopyConfig(cfg)
	own.Impersonate = rest.ImpersonationConfig{UserName: serviceaccount.MakeUsername(o.namespace, refresherAccount)}
	own.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(o.refresh.qps, max(1, int(o.refresh.qps)))
	own.WarningHandlerWithContext = rest.NoWarnings{} // the authors of the objects got these warnings
	return dynamic.NewForConfig(own)
}
