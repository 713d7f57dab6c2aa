//go:build e2e

package replicas

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/shop"
)

// Manifests of a tenant: a gateway with its policies, which are older than the writes,
// and a route. INFRA and APP stand for its namespaces.
const (
	tenantManifests = shop.Namespaces + "---" + shop.Gateway + "---" + shop.Route + "---" + shop.GatewayLimits + "---" + shop.GatewayAuth + `
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: INFRA, name: public}
spec: {gatewayClassName: shop, listeners: [{name: http, protocol: HTTP, port: 80, allowedRoutes: {namespaces: {from: All}}}]}
`
	routeAuth = `
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {namespace: APP, name: auth}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: toystore}
  rules: {authorization: {key: {}}}
`
)

// knownWrite is a write with a known verdict. It can be repeated.
type knownWrite struct {
	// manifest names the object; verb is "create", "delete" or a merge patch.
	manifest, verb string
	// want is the reason code of the denial, "" if the write is stored.
	want api.ReasonCode
}

// The writes of each writer, which it repeats.
var knownWrites = [][]knownWrite{
	{
		{limits("20"), "create", ""},
		{limits("20"), rate("30"), ""},
		{limits("20"), rate("100"), api.ReasonConstraintViolated},
		{limits("20"), "delete", ""},
		{limits("100"), "create", api.ReasonConstraintViolated},
	},
	{
		{routeAuth, "create", ""},
		{routeAuth, `{"spec":{"unset":["rules.authentication"]}}`, api.ReasonUnsetOverride},
		{routeAuth, `{"spec":{"rules":{"authorization":{"more":{}}}}}`, ""},
		{routeAuth, "delete", ""},
		{routeAuth + "  unset: [rules.authentication]\n", "create", api.ReasonUnsetOverride},
	},
	{
		{shop.GatewayAuth, "delete", api.ReasonOverrideRemoved},
		{shop.GatewayAuth, `{"metadata":{"labels":{"by":"a"}}}`, ""},
		{shop.GatewayAuth, `{"metadata":{"labels":{"by":"b"}}}`, ""},
		{shop.Route, `{"spec":{"parentRefs":[{"namespace":"INFRA","name":"public"}]}}`, api.ReasonOverrideEvaded},
	},
}

func limits(most string) string {
	return strings.NewReplacer("NAME", "name: limits", "LIMIT", most).Replace(shop.RouteLimits)
}

func rate(limit string) string {
	return `{"spec":{"limits":{"login":{"rates":[{"limit":` + limit + `,"window":"10s"}]}}}}`
}

// send sends the write for a tenant. An object that exists already, or not any more, was
// written before the connection of an earlier attempt was closed.
func (w knownWrite) send(t *testing.T, c client.Client, g tenant) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), env.Patience)
	defer cancel()
	object := decode(t, g.expand(w.manifest))
	switch w.verb {
	case "create":
		if err := c.Create(ctx, object); !apierrors.IsAlreadyExists(err) {
			return err
		}
		return nil
	case "delete":
		if err := c.Delete(ctx, object); !apierrors.IsNotFound(err) || !isAboutObject(err) {
			return err
		}
		return nil
	}
	return c.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(g.expand(w.verb))))
}

// isAboutObject reports whether an error is about an object: an API server that starts
// responds with 404 for resources, too.
func isAboutObject(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Details != nil && status.Status().Details.Name != ""
}

// isInterrupted reports whether the API server got no response from a replica.
func isInterrupted(err error) bool {
	return err != nil && strings.Contains(err.Error(), "failed calling webhook")
}

// denialPrefix is the prefix of Overrule's denials.
const denialPrefix = `admission webhook "validate.overrule.dev" denied the request: `

// writers write without a pause as kubectl does: the client retries after a 429.
type writers struct {
	t   *testing.T
	end func()
	// done are the writes of each writer that had their verdict.
	done []atomic.Int64

	mu          sync.Mutex
	fault       string   // the current one
	interrupted int      // writes that the API server rejected since no replica responded
	denied      []string // writes that had to be stored, and were denied
}

// startWriters starts a writer of each kind, with a tenant and connections of its own.
// Their user may not override.
func startWriters(t *testing.T, e *env.Env) *writers {
	t.Helper()
	developer := e.MustAddUser(t, newTenant("developer").app, nil, rbacv1.PolicyRule{
		APIGroups: []string{"kuadrant.io", "gateway.networking.k8s.io"}, Resources: []string{"*"},
		Verbs: []string{"get", "create", "patch", "delete"},
	})
	var group sync.WaitGroup
	stopped := make(chan struct{})
	s := &writers{t: t, done: make([]atomic.Int64, len(knownWrites))}
	s.end = sync.OnceFunc(func() { close(stopped); group.Wait() })
	t.Cleanup(s.end)
	for i, writes := range knownWrites {
		g, admin, c := newTenant("writer"), newClient(t, e.User, new(atomic.Int64)), newClient(t, developer, new(atomic.Int64))
		createAll(t, admin, g.expand(tenantManifests))
		group.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stopped:
					return
				case <-time.After(writeInterval):
					s.write(c, g, writes[n%len(writes)])
					s.done[i].Add(1)
				}
			}
		})
	}
	return s
}

// writeInterval leaves the CPU to the servers.
const writeInterval = 100 * time.Millisecond

// write repeats a write until it has its verdict.
func (s *writers) write(c client.Client, g tenant, w knownWrite) {
	for range int(env.Patience / env.Poll) {
		err := w.send(s.t, c, g)
		var status apierrors.APIStatus
		var text string
		var ours bool
		if errors.As(err, &status) {
			text, ours = strings.CutPrefix(status.Status().Message, denialPrefix)
		}
		s.mu.Lock()
		what := s.fault + ": " + g.expand(w.manifest) + w.verb
		switch {
		case err == nil:
			assert.Empty(s.t, w.want, "stored, and had to be denied: %s", what)
		case ours && w.want != "" && strings.HasPrefix(text, string(w.want)+":"):
			err = nil
		case ours:
			s.denied = append(s.denied, what+": "+text)
		case isInterrupted(err):
			s.interrupted++
		}
		s.mu.Unlock()
		if err == nil {
			return
		}
		time.Sleep(env.Poll) // the next write depends on this one
	}
	assert.Fail(s.t, "no verdict", "%s", w)
}

// during names the fault that follows, and returns what was interrupted and denied in the
// one before.
func (s *writers) during(fault string) (interrupted int, denied []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	interrupted, denied = s.interrupted, s.denied
	s.fault, s.interrupted, s.denied = fault, 0, nil
	return interrupted, denied
}

// awaitWrites waits until each writer has sent some more writes, and has their verdicts.
func (s *writers) awaitWrites(more int64) {
	s.t.Helper()
	for i := range s.done {
		from := s.done[i].Load() + 1 // one may be on its way
		env.Soon(s.t, func() bool { return s.done[i].Load() >= from+more }, "a writer gets no verdicts")
	}
}
