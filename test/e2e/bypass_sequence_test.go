//go:build e2e

package e2e

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
)

// sequenceRows are the rows with several steps.
var sequenceRows = map[string]row{
	"who-may":            sequence(checkCommandOfDenial),
	"blast-acknowledged": sequence(acknowledgedBlastRadius),
	"policy-finalizer":   sequence(finalizedPolicy),
	"policy-collected":   sequence(garbageCollectedPolicy),
	"weakened-before":    sequence(alreadyWeakened),
}

var canICommand = regexp.MustCompile(`kubectl (auth can-i override \S+ -n \S+)`)

// checkCommandOfDenial runs the command that a denial names: it reports correctly
// who is allowed to override, including a user with the right for this policy
// only.
func checkCommandOfDenial(t *testing.T, g testNamespaces) {
	const delegate, neighbour = "bypass-delegate", "bypass-neighbour"
	succeed(t, g.apply(baseObjects))
	change := rbacv1.PolicyRule{APIGroups: []string{"kuadrant.io"}, Resources: []string{"authpolicies"}, Verbs: []string{"get", "delete"}}
	override := func(name string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{"kuadrant.io"}, Resources: []string{"authpolicies"}, ResourceNames: []string{name}, Verbs: []string{"override"}}
	}
	g.c.MustAddUser(t, delegate, nil, change, override("gw-auth"))
	g.c.MustAddUser(t, neighbour, nil, change, override("another"))

	w := remove("INFRA", "authpolicy/gw-auth")
	g.awaitDenial(t, w)
	got := g.runAs(unprivileged, w)
	requireDenial(t, got, "OverrideRemoved")
	line := canICommand.FindStringSubmatch(got.Stderr)
	require.NotEmpty(t, line, got.Stderr)
	assert.Equal(t, g.expand("auth can-i override authpolicies.kuadrant.io/gw-auth -n INFRA"), line[1])
	for user, may := range map[string]string{unprivileged: "no\n", neighbour: "no\n", delegate: "yes\n", privileged: "yes\n"} {
		assert.Equal(t, may, g.c.Kubectl(append([]string{"--as", user}, strings.Fields(line[1])...)...).Stdout, user)
	}
	requireDenial(t, g.runAs(neighbour, w), "OverrideRemoved")
	got = g.runAs(delegate, w)
	succeed(t, got)
	assert.Contains(t, got.Stderr, g.expand("override rules.authentication.sso of AuthPolicy INFRA/gw-auth"))
}

// finalizedPolicy has a finalizer on the policy: its deletion is evaluated, it
// stays effective until it is gone, and any user may remove the finalizer.
func finalizedPolicy(t *testing.T, g testNamespaces) {
	succeed(t, g.apply(strings.Replace(baseObjects, "name: gw-auth", "name: gw-auth, finalizers: [e2e.example.com/hold]", 1)))
	w := kubectl("-n", "INFRA", "delete", "authpolicy/gw-auth", "--wait=false")
	g.awaitDenial(t, w)
	requireDenial(t, g.runAs(unprivileged, w), "OverrideRemoved")
	succeed(t, g.runAs(privileged, w))

	requireDenial(t, g.runAs(unprivileged, apply(route(onInner, byPath))), "OverrideEvaded")
	requireDenial(t, g.runAs(unprivileged, patch("INFRA", "authpolicy/gw-auth", `{"spec":{"overrides":{"rules":{"authentication":{"sso":{"issuer":"theirs"}}}}}}`)), "OverrideRemoved")
	succeed(t, g.runAs(unprivileged, patch("INFRA", "authpolicy/gw-auth", `{"metadata":{"finalizers":null}}`)))
	assert.Equal(t, 1, g.c.Kubectl("-n", g.infra, "get", "authpolicy/gw-auth").Code, "it is gone")
	soon(t, func() bool { return g.runAs(unprivileged, apply(route(onInner, byPath)).dryRun()).Code == 0 }, "it is no longer effective")
}

// garbageCollectedPolicy sets an owner on the policy, by a user who is allowed
// to: afterwards any user may delete the owner, and garbage collection is not
// denied.
func garbageCollectedPolicy(t *testing.T, g testNamespaces) {
	succeed(t, g.apply(baseObjects+"\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: INFRA, name: release}\n"))
	uid := g.c.Kubectl("-n", g.infra, "get", "configmap/release", "-o", "jsonpath={.metadata.uid}").Stdout
	w := patch("INFRA", "authpolicy/gw-auth", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"release","uid":"`+uid+`"}]}}`)
	g.awaitDenial(t, w)
	requireDenial(t, g.runAs(unprivileged, w), "OverrideEvaded", "would be deleted with ConfigMap release, its new owner")
	got := g.runAs(privileged, w)
	succeed(t, got)
	assert.Contains(t, got.Stderr, "Warning: ")

	succeed(t, g.runAs(unprivileged, remove("INFRA", "configmap/release")))
	soon(t, func() bool { return g.c.Kubectl("-n", g.infra, "get", "authpolicy/gw-auth").Code != 0 }, "it is not garbage-collected")
}

// alreadyWeakened has a gate that is older than the override: its writer gets a
// warning, and may keep editing.
func alreadyWeakened(t *testing.T, g testNamespaces) {
	gate := func(key string) string {
		return auth("APP", "route-auth", routeRef("toystore"), "when: [{predicate: 'false'}], rules: {authorization: {"+key+": {}}}")
	}
	succeed(t, g.apply(strings.Replace(baseObjects, gatewayOverride, "", 1)+gate("opa")))
	got := g.runAs(privileged, apply(gatewayOverride))
	succeed(t, got)
	assert.Contains(t, got.Stderr, "decides whether ")
	g.awaitDenial(t, remove("INFRA", "authpolicy/gw-auth"))

	got = g.runAs(unprivileged, apply(gate("cel")))
	succeed(t, got)
	assert.Contains(t, got.Stderr, "decides whether ")
	succeed(t, g.runAs(unprivileged, patch("APP", "authpolicy/route-auth", `{"spec":{"when":null}}`)))
	requireDenial(t, g.runAs(unprivileged, apply(gate("cel"))), "OverrideWeakened")
}

var annotateCommand = regexp.MustCompile(`kubectl (annotate --overwrite lime\.policies\.example\.com gw-coat -n \S+ overrule\.dev/acknowledge-blast-radius=)([0-9a-f]{16})`)

// acknowledgedBlastRadius deletes a policy whose kind limits the blast radius to
// one path: it needs an acknowledgement of exactly that change, and the right to
// override.
func acknowledgedBlastRadius(t *testing.T, g testNamespaces) {
	succeed(t, g.apply(strings.Replace(objectsWithOverride("Lime"), route(onEdge, byPath), "", 1)))
	succeed(t, g.apply(route(onEdge, byPath))) // a route of this test's own namespace
	w := remove("INFRA", "lime/gw-coat")
	g.awaitDenial(t, w)
	got := g.runAs(privileged, w)
	requireDenial(t, got, "BlastRadius", g.expand("effective policy of Lime changes on 2 paths in 1 namespace (2 lose colors), more than the 1 allowed without acknowledgement"))
	line := annotateCommand.FindStringSubmatch(got.Stderr)
	require.NotEmpty(t, line, got.Stderr)
	assert.Contains(t, got.Stderr, "Warning: override ")

	succeed(t, g.runAs(privileged, kubectl(strings.Fields(line[1]+"0123456789abcdef")...)))
	requireDenial(t, g.runAs(privileged, w), "BlastRadius", "0123456789abcdef")

	succeed(t, g.runAs(unprivileged, kubectl(strings.Fields(line[1]+line[2])...)))
	requireDenial(t, g.runAs(unprivileged, w), "OverrideRemoved")
	succeed(t, g.runAs(privileged, w))
}
