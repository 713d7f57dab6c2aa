package guard_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/test/worlds"
)

// oneHostname is a gateway with an override on a listener, and routes that all are on one
// hostname, each with the match that match returns.
func oneHostname(n int, match func(int) string) string {
	all := []string{gatewayDoc("g", "istio", "http", "alt"), at("g", "http")}
	for i := range n {
		all = append(all, hostRoute(fmt.Sprint("r", i), match(i)))
	}
	return docs(all...)
}

// swappedPorts is the gateway of oneHostname after its listeners swap their ports.
var swappedPorts = strings.NewReplacer("port: 80,", "port: 81,", "port: 81,", "port: 80,").Replace(gatewayDoc("g", "istio", "http", "alt"))

// byHeader is a match that competes with all others of its kind.
func byHeader(i int) string { return fmt.Sprintf("{headers: [{name: X-Team, value: t%d}]}", i) }

// Each of many routes on one hostname may take requests of each other one: that is too
// much to decide in time, and no reason to hang.
func TestTooManyMoves(t *testing.T) {
	v := world(t, oneHostname(400, byHeader))
	ctx := &endingContext{Context: t.Context(), left: 100}
	ev, err := (&guard.Guard{Engine: effective.NewEngine()}).Evaluate(ctx, v, change(v, read(t, v, swappedPorts)), nil)
	require.NoError(t, err)
	assert.Equal(t, []string{"Deny TooMuch"}, codes(t, ev))
}

// endingContext ends once it was asked a number of times whether it has.
type endingContext struct {
	context.Context

	left int
}

func (c *endingContext) Err() error {
	if c.left--; c.left < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

func hostRoute(name, match string) string {
	doc := worlds.RouteDoc(name, "[{matches: ["+match+"]}]", "g")
	return strings.Replace(doc, "spec:\n", "spec:\n  hostnames: [shop.example.com]\n", 1)
}

// BenchmarkOneHostname evaluates writes at a gateway with 5,000 routes on one hostname:
// they compete for its requests.
func BenchmarkOneHostname(b *testing.B) {
	path := func(i int) string { return fmt.Sprintf("{path: {value: /p%d/x}}", i) }
	for name, c := range map[string]struct {
		match func(int) string
		write string
	}{
		"paths/a route more":                {path, hostRoute("new", path(5001))},
		"paths/a route for all paths":       {path, hostRoute("new", "{path: {value: /}}")},
		"paths/a route on another listener": {path, strings.Replace(hostRoute("r7", path(7)), "name: g}", "name: g, sectionName: alt}", 1)},
		"paths/listeners swap their ports":  {path, swappedPorts},
		"headers/a route more":              {byHeader, hostRoute("new", byHeader(5001))},
		"headers/a route for all paths":     {byHeader, hostRoute("new", "{path: {value: /}}")},
	} {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			v := world(b, oneHostname(5000, c.match))
			g := &guard.Guard{Engine: effective.NewEngine()}
			w := change(v, read(b, v, c.write))
			b.ReportAllocs()
			var denials int
			for b.Loop() {
				ev, err := g.Evaluate(b.Context(), v, w, nil)
				require.NoError(b, err)
				denials = len(ev.Denials)
			}
			b.ReportMetric(float64(denials), "denials")
		})
	}
}

// A listener that conflicts with one before it takes nothing.
func TestListenersThatConflict(t *testing.T) {
	first := gatewayDoc("g", "istio", "http", "more")
	conflict := strings.Replace(first, "port: 81", "port: 80", 1)
	v := world(t, docs(gatewayDoc("g", "istio", "http"), at("g", "http"), routeDoc("r", "[{}]", "g")))
	assert.Equal(t, []string{"Warn Unreached"}, codes(t, evaluate(t, v, conflict)), "the new one comes last")
	swapped := strings.NewReplacer("name: http", "name: more", "name: more", "name: http").Replace(conflict)
	assert.Equal(t, []string{"Deny OverrideEvaded a"}, slices.DeleteFunc(codes(t, evaluate(t, v, swapped)), func(c string) bool { return !strings.Contains(c, "OverrideEvaded") }), "the new one comes first")
}

// A label of a namespace may admit a listener set that takes connections of a listener
// with an override.
func TestNamespaceAdmitsListenerSet(t *testing.T) {
	coat := worlds.ProfileDoc("Coat", "levels: [Gateway, Listener]\nstrategy: {allowed: [merge]}\nblocks: {overrides: [overrides]}")
	g := strings.Replace(gatewayDoc("g", "istio", "http"), "namespaces: {from: All}}", "namespaces: {from: Selector, selector: {matchLabels: {sets: 'yes'}}}}", 1)
	set := strings.Replace(worlds.SetDoc("app", "s", "g", "shop"), "port: 8080", "port: 80, hostname: shop.example.com", 1)
	policy := policyDoc("Coat", "infra", "top", "targetRefs: [{kind: Gateway, name: g, sectionName: http}]\noverrides: {a: 1}")
	v := world(t, docs(coat, g, set, policy, "kind: Namespace\nmetadata: {name: app}"))
	assert.Equal(t, []string{"Deny OverrideEvaded a"}, codes(t, evaluate(t, v, "kind: Namespace\nmetadata: {name: app, labels: {sets: 'yes'}}")))
	assert.Empty(t, codes(t, evaluate(t, v, "kind: Namespace\nmetadata: {name: app, labels: {sets: 'no'}}")))
}

// The path of a kind that ends at a route has the requests of all of its rules.
func TestMovesFromPathsThatEndAtRoutes(t *testing.T) {
	coat := worlds.ProfileDoc("Coat", "levels: [Gateway, Route]\nstrategy: {allowed: [merge]}\nblocks: {overrides: [overrides]}")
	policy := policyDoc("Coat", "app", "p", "targetRefs: [{kind: HTTPRoute, name: r}]\noverrides: {a: 1}")
	const a, b = "{matches: [{path: {value: /a}}]}", "{matches: [{path: {value: /b}}]}"
	v := world(t, docs(coat, gatewayDoc("g", "istio", "http"), routeDoc("r", "["+a+", "+b+"]", "g"), routeDoc("q", "[{}]", "g"), policy))
	assert.Empty(t, codes(t, evaluate(t, v, routeDoc("r", "["+b+", "+a+"]", "g"))))
	assert.Equal(t, []string{"Deny OverrideEvaded a"}, codes(t, evaluate(t, v, routeDoc("r", "["+a+"]", "g"))))
}
