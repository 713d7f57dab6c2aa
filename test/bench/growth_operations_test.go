package bench

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/go-logr/logr"

	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
	"overrule.dev/overrule/test/worlds"
	"overrule.dev/overrule/webhook"
)

// routeWrite is a review at the validating webhook, wired as in production. It is
// a dry run, since no watch would report to the in-flight log that it was stored.
func routeWrite(t testing.TB, w *growthCluster) operation {
	t.Helper()
	handler := webhook.New(webhook.Options{
		Store: w.Store, Guard: w.guard, InFlight: w.inFlight,
		Enforcement: guard.EnforceDeny, Log: logr.Discard(),
	}).Handler()
	var reviews [][]byte
	for _, i := range w.spread() {
		write := w.Size.RouteWrite(i)
		w.Put(t, write.Before)
		reviews = append(reviews, dryRun(t, write))
	}
	return func(i int) error { return validate(handler, reviews[i%len(reviews)]) }
}

func dryRun(t testing.TB, write worlds.Write) []byte {
	t.Helper()
	return bytes.Replace(write.Review(t, ""), []byte(`"dryRun":false`), []byte(`"dryRun":true`), 1)
}

// gatewayPolicy writes the policy of the gateway that is the same in each
// cluster.
func gatewayPolicy(t testing.TB, w *growthCluster) operation {
	t.Helper()
	return w.policyWrite(t, spare, func(n int) map[string]any { return onSpareGateway(spare.GatewayPolicy(n)) })
}

// wholePolicy writes the policy of a gateway that has all routes.
func wholePolicy(t testing.TB, routes int) operation {
	t.Helper()
	u := worlds.Uniform{Routes: routes, Rules: spare.Rules, OwnPolicy: true}
	c := u.Cluster(t)
	return withGuard(c).policyWrite(t, u, u.GatewayPolicy)
}

// policyWrite writes the policy of a gateway, with another value each time, so
// that the memo has no result after the write.
func (w *growthCluster) policyWrite(t testing.TB, u worlds.Uniform, policy func(int) map[string]any) operation {
	t.Helper()
	before := w.Decode(t, policy(0))
	return func(i int) error {
		after := w.Decode(t, policy(1+i))
		v, _ := w.Store.View()
		j, err := w.guard.Evaluate(t.Context(), v, guard.Change{
			Operation: guard.Update, Before: before, After: after,
		}, nil)
		switch {
		case err != nil:
			return err
		case j.Denied():
			return fmt.Errorf("the write is denied: %+v", j.Denials)
		case j.Changes.Paths != u.Routes*u.Rules:
			return fmt.Errorf("%d paths are changed in place of %d", j.Changes.Paths, u.Routes*u.Rules)
		}
		return nil
	}
}

// routeEvent handles a watch event of a decoded route: reads it and puts it into
// the store.
func routeEvent(t testing.TB, w *growthCluster) operation {
	t.Helper()
	var objects []*gateway.RouteObject
	for _, i := range w.spread() {
		objects = append(objects, received[*gateway.RouteObject](t, w.Size.Route(i)))
	}
	return func(i int) error {
		o, err := gateway.FromRoute(gateway.KindHTTPRoute, objects[i%len(objects)])
		if err != nil {
			return err
		}
		w.Store.Apply(snapshot.Put(o))
		return nil
	}
}

// policyEvent does the same with a policy, which a watch decodes as an
// unstructured object.
func policyEvent(t testing.TB, w *growthCluster) operation {
	t.Helper()
	kinds := map[string]*policykind.Kind{w.Auth.Kind: w.Auth, w.Limits.Kind: w.Limits}
	var objects []map[string]any
	for _, i := range w.spread() {
		objects = append(objects, received[map[string]any](t, w.Size.RoutePolicy(i)))
	}
	return func(i int) error {
		o := objects[i%len(objects)]
		w.Store.Apply(snapshot.Put(kinds[o["kind"].(string)].Read(o, merge.Newest).Pack()))
		return nil
	}
}
