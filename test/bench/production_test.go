package bench

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/types"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cache"
	"overrule.dev/overrule/internal/controllers/audit"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/inflight"
	"overrule.dev/overrule/internal/rights"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
	"overrule.dev/overrule/webhook"
)

// apiServer answers the only request of the benchmarks' writes: whether the user
// may change overrides. They may, and the answer is cached for some seconds, as
// in production. Any other request fails, and the write is denied.
func apiServer(tb testing.TB) *rest.Config {
	tb.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review authorizationv1.SubjectAccessReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Spec.ResourceAttributes == nil {
			http.Error(w, "no review: "+r.URL.Path, http.StatusInternalServerError)
			return
		}
		review.Status.Allowed = true
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(review); err != nil {
			tb.Error(err)
		}
	}))
	tb.Cleanup(s.Close)
	return &rest.Config{Host: s.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
}

// production is Overrule with a cluster in memory, wired as in internal/server.
type production struct {
	*worlds.Cluster
	guard    *guard.Guard
	hooks    *webhook.Server
	inFlight *inflight.Log
	auditor  *audit.Auditor
}

func newProduction(tb testing.TB, c *worlds.Cluster) *production {
	tb.Helper()
	cfg := apiServer(tb)
	watcher, err := cache.New(cfg, c.Store, cache.Options{})
	require.NoError(tb, err)
	client, err := authorizationv1client.NewForConfig(cfg)
	require.NoError(tb, err)
	evaluator := &guard.Guard{
		Engine: effective.NewEngine(), ReadLive: watcher.ReadLive, Permissions: rights.New(client, watcher.Resource),
	}
	inFlight := inflight.New(c.Store, inflight.Options{})
	hooks := webhook.New(webhook.Options{
		Store: c.Store, Enforcement: guard.EnforceDeny,
		Guard: evaluator, InFlight: inFlight,
		Metrics: webhook.NewMetrics(prometheus.NewRegistry()),
		Log:     zap.New(zap.JSONEncoder(), zap.WriteTo(io.Discard)),
	})
	// It observes each event, and audits once it is started.
	auditor := audit.New(audit.Options{Store: c.Store, Violations: evaluator.Violations})
	return &production{c, evaluator, hooks, inFlight, auditor}
}

// audit evaluates everything that the object affects, as the audit does a moment
// after each event; this fills the memo.
func (p *production) audit(tb testing.TB, ref api.Ref) {
	tb.Helper()
	v, _ := p.Store.View()
	_, err := p.guard.Violations(tb.Context(), v, effective.ScopeOf(v.Get(ref)))
	require.NoError(tb, err)
}

// watchEvent is the watch event of an admitted write.
type watchEvent struct {
	ref  api.Ref
	uid  types.UID
	data []byte // the object as it was written
}

// newest is a resourceVersion after all those of a worlds.
const newest = "1000000000"

// event handles the watch event of a stored write as an informer does: the object
// is read, put into the store, and removed from the in-flight log.
func (p *production) event(s watchEvent) error {
	o, err := p.Read(s.ref.PolicyKind(), s.data)
	if err != nil {
		return err
	}
	p.Store.Apply(snapshot.Put(o))
	p.Store.Observe(snapshot.Observation{Ref: s.ref, UID: s.uid, Version: newest})
	return nil
}
