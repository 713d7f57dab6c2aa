package guard_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/test/worlds"
)

const (
	owned   = ", ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: x, uid: u}]"
	waiting = ", deletionTimestamp: '2026-01-01T00:00:00Z'"
)

// lacquer is a kind whose policies may target gateways of other namespaces, and classes.
var lacquer = worlds.ClassProfileDoc("inherited", "Lacquer",
	"targets: {fields: [targetRefs], namespaces: referenceGrant, classFrom: [\"*\"]}\nstrategy: {allowed: [merge]}\nblocks: {overrides: [overrides]}")

func lacquerRef(namespace, name string) api.Ref {
	return api.Ref{Group: "example.com", Kind: "Lacquer", Namespace: namespace, Name: name}
}

func namespaceDoc(name, more string) string {
	return "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + name + more + "}"
}

func classDoc(name, more string) string {
	return "apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: " + name + more + "}\nspec: {controllerName: example.com/x}"
}

// leave is a ReferenceGrant for Lacquers of a namespace to target gateways of infra.
func leave(name, from, more string) string {
	return "apiVersion: gateway.networking.k8s.io/v1beta1\nkind: ReferenceGrant\nmetadata: {namespace: infra, name: " + name + more + "}\n" +
		"spec: {from: [{group: example.com, kind: Lacquer, namespace: " + from + "}], to: [{group: gateway.networking.k8s.io, kind: Gateway}]}"
}

// lacquerOn is a Lacquer with the override of these tests.
func lacquerOn(namespace, name, kind, target, more string) string {
	return policyDoc("Lacquer", namespace, name, "targetRefs: [{kind: "+kind+", name: "+target+more+"}]\noverrides: {a: 1}")
}

// An equal override stands in for none where it rests on what goes without a write
// that is evaluated, unless the one that is lost rested on that as well.
func TestSubstitutesDependOnTerminating(t *testing.T) {
	const inInfra = ", namespace: infra"
	first := lacquerOn("sec", "top", "Gateway", "g", inInfra) + "\n---\n" + leave("leave", "sec", "")
	second := lacquerOn("two", "top", "Gateway", "g", inInfra) + "\n---\n" + leave("leave-two", "two", "")
	byClass := func(class string) string {
		return lacquerOn("infra", "of-class", "GatewayClass", "istio", "") + "\n---\n" + classDoc("istio", class)
	}
	here := lacquerOn("infra", "top", "Gateway", "g", "")
	tests := map[string]struct {
		world string
		first api.Ref
		stays bool
	}{
		"a policy of another namespace":                         {first + "\n---\n" + second, lacquerRef("sec", "top"), false},
		"the namespace of the one that is lost":                 {lacquerOn("sec", "zone", "Gateway", "g", inInfra) + "\n---\n" + first + "\n---\n" + namespaceDoc("sec", owned), lacquerRef("sec", "top"), true},
		"the grant of the one that is lost":                     {lacquerOn("sec", "zone", "Gateway", "g", inInfra) + "\n---\n" + lacquerOn("sec", "top", "Gateway", "g", inInfra) + "\n---\n" + leave("leave", "sec", owned), lacquerRef("sec", "top"), true},
		"the namespace of the gateway":                          {first + "\n---\n" + here + "\n---\n" + namespaceDoc("infra", owned), lacquerRef("sec", "top"), true},
		"a class that stays":                                    {here + "\n---\n" + byClass(""), lacquerRef("infra", "top"), true},
		"a class with an owner":                                 {here + "\n---\n" + byClass(owned), lacquerRef("infra", "top"), false},
		"a class that is being deleted":                         {here + "\n---\n" + byClass(waiting), lacquerRef("infra", "top"), false},
		"the class of the one that is lost, which has an owner": {lacquerOn("infra", "zone", "GatewayClass", "istio", "") + "\n---\n" + byClass(owned), lacquerRef("infra", "of-class"), true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			v := world(t, base(lacquer, test.world))
			c := change(v, read(t, v, lacquerOn(test.first.Namespace, test.first.Name, "Gateway", "nowhere", "")))
			assert.Equal(t, test.stays, len(findingsOf(t, evaluateAs(t, bossAndDev(), "dev", v, c), "Override")) == 0)
		})
	}
}

// The same policy keeps an override by nothing that is going, either: a route does not
// move to where it holds by such a grant, nor is it moved to such a class.
func TestOverridesMoveToTerminating(t *testing.T) {
	w := func(class string) string {
		return base(lacquer, classDoc("istio", ""), classDoc("new", class), lacquerOn("infra", "top", "Gateway", "g", ""))
	}
	for name, test := range map[string]struct {
		class string
		stays bool
	}{"a class that stays": {"", true}, "a class with an owner": {owned, false}} {
		t.Run(name, func(t *testing.T) {
			v := world(t, strings.Replace(w(test.class), "gatewayClassName: istio", "gatewayClassName: new", 1))
			c := change(v, read(t, v, lacquerOn("infra", "top", "GatewayClass", "new", "")))
			assert.Equal(t, test.stays, len(findingsOf(t, evaluateAs(t, bossAndDev(), "dev", v, c), "Override")) == 0)
		})
		t.Run(name+", to which the gateway is moved", func(t *testing.T) {
			both := policyDoc("Lacquer", "infra", "top", "targetRefs: [{kind: GatewayClass, name: istio}, {kind: GatewayClass, name: new}]\noverrides: {a: 1}")
			v := world(t, base(lacquer, classDoc("istio", ""), classDoc("new", test.class), both))
			c := change(v, read(t, v, strings.Replace(gatewayDoc("g", "istio", "http"), "istio", "new", 1)))
			assert.Equal(t, test.stays, len(findingsOf(t, evaluateAs(t, bossAndDev(), "dev", v, c), "Override")) == 0)
		})
	}
}

// Paths of one result may rest on different objects. A policy that is going on one of
// them counts as going on all.
func TestSubstituteWithOneTerminatingTarget(t *testing.T) {
	on := func(name, kind, one, other string) string {
		return policyDoc("Lacquer", "infra", name, "targetRefs: [{kind: "+kind+", name: "+one+"}, {kind: "+kind+", name: "+other+"}]\noverrides: {a: 1}")
	}
	v := world(t, docs(lacquer, classDoc("istio", ""), classDoc("new", owned), gatewayDoc("g", "istio", "http"), gatewayDoc("h", "new", "http"),
		routeDoc("r", "[{}]", "g", "h"), on("top", "Gateway", "g", "h"), on("second", "GatewayClass", "istio", "new")))
	c := change(v, read(t, v, lacquerOn("infra", "top", "Gateway", "nowhere", "")))
	assert.Equal(t, []string{"Deny OverrideEvaded a Lacquer infra/top: 2 paths"},
		findingsOf(t, evaluateAs(t, bossAndDev(), "dev", v, c), "Override"))
}

// An override that only what is going beats holds once that is gone: it is not removed
// meanwhile.
func TestOverridesBelowTerminating(t *testing.T) {
	above := func(more string) string {
		return strings.Replace(policyDoc("Lacquer", "infra", "above", "targetRefs: [{kind: GatewayClass, name: istio}]\noverrides: {a: 2}"), "name: above}", "name: above"+more+"}", 1)
	}
	here := lacquerOn("infra", "top", "Gateway", "g", "")
	for name, test := range map[string]struct {
		class, above string
		free         bool
	}{
		"a policy that stays":                 {free: true},
		"a policy with an owner":              {above: owned},
		"a policy that waits for a finalizer": {above: waiting},
		"a policy on a class with an owner":   {class: owned},
		"a policy on a class that is deleted": {class: waiting},
		"both of which have an owner":         {owned, owned, false},
	} {
		v := world(t, base(lacquer, here, classDoc("istio", test.class), above(test.above)))
		t.Run(name+": target another object", func(t *testing.T) {
			c := change(v, read(t, v, lacquerOn("infra", "top", "Gateway", "nowhere", "")))
			assert.Equal(t, test.free, len(findingsOf(t, evaluateAs(t, bossAndDev(), "dev", v, c), "Override")) == 0)
		})
		t.Run(name+": label it", func(t *testing.T) {
			assert.Empty(t, findingsOf(t, evaluateAs(t, bossAndDev(), "dev", v, change(v, read(t, v, strings.Replace(here, "name: top}", "name: top, labels: {a: b}}", 1)))), "Override"))
		})
	}
}
