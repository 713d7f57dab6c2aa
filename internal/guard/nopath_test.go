package guard_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// A selector can have thousands of targets, and a terminal has ten lines.
func TestPolicyWithoutPathOnManyTargets(t *testing.T) {
	var text, targets []string
	for i := range 12 {
		text = append(text, routeDoc(fmt.Sprintf("r%02d", i), "[{}]"))
		targets = append(targets, fmt.Sprintf("{kind: HTTPRoute, name: r%02d}", i))
	}
	got := findings(t, evaluate(t, world(t, docs(text...)), policyDoc("Paint", "app", "p", "targetRefs: ["+strings.Join(targets, ", ")+"]\na: 1")))
	require.Len(t, got, 9)
	assert.Contains(t, got, "Warn NoPath: 4")
}

// A Gateway may have been created a moment ago, together with all below it.
func TestMissingParentIsReadLive(t *testing.T) {
	v := world(t, docs(routeDoc("r", "[{}]", "g", "h", "none")))
	policy := policyDoc("Paint", "app", "p", "targetRefs: [{kind: HTTPRoute, name: r}]\na: 1")
	var asked []string
	live := func(_ context.Context, ref api.Ref) (snapshot.Object, error) {
		asked = append(asked, ref.String())
		if ref.Name == "none" {
			return nil, nil
		}
		return read(t, v, gatewayDoc(ref.Name, "c", "http")), nil
	}
	ev := evaluateBy(t, &guard.Guard{Engine: effective.NewEngine(), ReadLive: live}, v, policy)
	assert.Empty(t, findings(t, ev))
	assert.Equal(t, 2, ev.Changes.Paths)
	assert.Equal(t, []string{"Gateway infra/g", "Gateway infra/h", "Gateway infra/none"}, asked)
	t.Run("by the route itself", func(t *testing.T) {
		asked = nil
		ev := evaluateBy(t, &guard.Guard{Engine: effective.NewEngine(), ReadLive: live}, v, routeDoc("new", "[{}]", "g", "none"))
		assert.Equal(t, []string{"Gateway infra/g", "Gateway infra/none"}, asked)
		require.Len(t, ev.Warnings, 1)
		assert.Equal(t, "a parentRef of HTTPRoute app/new has no effect: Gateway infra/none does not exist; check the parentRef, or create its object", ev.Warnings[0].Message())
	})
	t.Run("no answer is no verdict", func(t *testing.T) {
		g := &guard.Guard{Engine: effective.NewEngine(), ReadLive: func(context.Context, api.Ref) (snapshot.Object, error) { return nil, errors.New("gone") }}
		_, err := g.Evaluate(t.Context(), v, change(v, read(t, v, policy)), nil)
		assert.EqualError(t, err, "get Gateway infra/g: gone")
	})
	t.Run("no more than a number of them", func(t *testing.T) {
		asked = nil
		var gateways []string
		for i := range 20 {
			gateways = append(gateways, fmt.Sprintf("g%d", i))
		}
		evaluateBy(t, &guard.Guard{Engine: effective.NewEngine(), ReadLive: live}, world(t, routeDoc("r", "[{}]", gateways...)), policy)
		assert.Len(t, asked, 16)
	})
}

// A policy to which the write newly refers may have been created a moment ago, too.
func TestMissingReferenceIsReadLive(t *testing.T) {
	v := world(t, docs(gatewayDoc("g", "c", "http"), worlds.ProfileDoc("Stain", "attachment: {extensionRef: true}\n"), policyDoc("Stain", "app", "there", "a: 1")))
	filter := "{type: ExtensionRef, extensionRef: {group: example.com, kind: %s}}"
	route := routeDoc("r", fmt.Sprintf("[{filters: ["+filter+", "+filter+", "+filter+", "+filter+"]}]", "Stain, name: there", "Stain, name: new", "Stain, name: gone", "Smear, name: gone"), "g")
	var asked []string
	live := func(_ context.Context, ref api.Ref) (snapshot.Object, error) {
		if asked = append(asked, ref.String()); ref.Name == "new" {
			return read(t, v, policyDoc("Stain", "app", "new", "a: 1")), nil
		}
		return nil, nil
	}
	ev := evaluateBy(t, &guard.Guard{Engine: effective.NewEngine(), ReadLive: live}, v, route)
	assert.Equal(t, []string{"Stain app/new", "Stain app/gone"}, asked)
	require.Len(t, ev.Warnings, 1)
	assert.Equal(t, "a filter of HTTPRoute app/r rule-1 refers to Stain app/gone, which does not exist; check its name, or create it", ev.Warnings[0].Message())
	assert.Equal(t, "spec.rules[0].filters", ev.Warnings[0].Field)
}

// The names of gateways and listeners of other namespaces are told only to readers of all objects.
func TestMissingParentOfAnotherNamespace(t *testing.T) {
	v := world(t, docs(gatewayDoc("edge", "c", "http")))
	for name, want := range map[string]string{
		"gateway": "Gateway infra/edgy does not exist; did you mean Gateway infra/edge?",
		"section": "Gateway infra/edge has no listener named htp; did you mean section http?",
		"port":    "Gateway infra/edge has no listener with port 81; its listeners are http (port 80)",
		"own":     "Gateway app/edge does not exist; did you mean Gateway infra/edge?",
	} {
		parent := map[string]string{"gateway": "{name: edgy, namespace: infra}", "section": "{name: edge, namespace: infra, sectionName: htp}", "port": "{name: edge, namespace: infra, port: 81}", "own": "{name: edge}"}[name]
		route := "{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {namespace: app, name: r}, spec: {parentRefs: [" + parent + "]}}"
		for _, all := range []bool{true, false} {
			ev := evaluateBy(t, &guard.Guard{Engine: effective.NewEngine(), ReadsAll: all}, v, route)
			require.Len(t, ev.Warnings, 1, name)
			assert.Equal(t, api.ReasonTargetNotFound, ev.Warnings[0].Code)
			message := ev.Warnings[0].Message()
			if all {
				assert.Equal(t, "a parentRef of HTTPRoute app/r has no effect: "+want, message)
			} else {
				why, hint, _ := strings.Cut(want, "; ")
				assert.Equal(t, "a parentRef of HTTPRoute app/r has no effect: "+why+"; check the parentRef, or create its object", message)
				assert.NotContains(t, message, hint)
			}
		}
	}
}

// A policy on no path has faults of its own.
func TestAuditPathless(t *testing.T) {
	v := world(t, docs(
		worlds.SchemaDoc("Paint", "type: object\nproperties:\n  a: {type: integer}\n  targetRefs: {type: array, items: {type: object, x-kubernetes-preserve-unknown-fields: true}}"),
		policyDoc("Paint", "app", "text", "targetRefs: [{kind: HTTPRoute, name: r}, {kind: HTTPRoute, name: s}]\na: x"),
		policyDoc("Paint", "app", "sound", "targetRefs: [{kind: HTTPRoute, name: r}]\na: 1"),
		policyDoc("Paint", "app", "broken", "targetRefs: [{kind: HTTPRoute, name: r}]\noverrides: 1"),
		policyDoc("Paint", "app", "aimless", "targetRefs: 1\na: 1")))
	g := &guard.Guard{Engine: effective.NewEngine(), ReadsAll: true}
	all := slices.Collect(v.Policies(api.PolicyKind{Group: worlds.Group, Kind: "Paint"}))
	found, err := g.ViolationsWithoutPath(t.Context(), v, all)
	require.NoError(t, err)
	var got []string
	for _, f := range violations(t, found) {
		require.Len(t, f.Path, 1)
		got = append(got, fmt.Sprintf("%s %s %s on %s %s: %s", f.Action, f.Code, f.PolicyKind.Kind, f.Path[0], f.Policy, f.Message))
	}
	assert.Equal(t, []string{
		`Deny Invalid Paint on HTTPRoute app/r Paint app/broken: Paint app/broken, spec.overrides, Invalid, "number"`,
		`Deny EffectiveInvalid Paint on HTTPRoute app/r Paint app/text: Paint app/text, spec.a, "string"`,
		`Deny Invalid Paint on Paint app/aimless Paint app/aimless: Paint app/aimless, spec.targetRefs, Invalid, "number"`,
	}, got)
	t.Run("a deadline ends it", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		// another world: what was checked once is remembered
		v := world(t, docs(worlds.SchemaDoc("Paint", "type: object\nproperties: {a: {type: integer}}"), policyDoc("Paint", "app", "text", "targetRefs: [{kind: HTTPRoute, name: r}]\na: x")))
		_, err := g.ViolationsWithoutPath(ctx, v, slices.Collect(v.Policies(api.PolicyKind{Group: worlds.Group, Kind: "Paint"})))
		assert.ErrorIs(t, err, effective.ErrTooMuch)
	})
}
