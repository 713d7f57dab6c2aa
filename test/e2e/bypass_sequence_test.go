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

// aroundStories are the rows of several steps.
var aroundStories = map[string]row{
	"who-may":            story(whoMay),
	"blast-acknowledged": story(acknowledgedBlast),
	"policy-finalizer":   story(finalizedPolicy),
	"policy-collected":   story(collectedPolicy),
	"weakened-before":    story(weakenedBefore),
}

var canI = regexp.MustCompile(`kubectl (auth can-i override \S+ -n \S+)`)

// whoMay has the command that a denial names tell who may, one who has the right
// for this policy alone included.
func whoMay(t *testing.T, g ground) {
	const delegate, neighbour = "around-delegate", "around-neighbour"
	succeed(t, g.apply(world))
	change := rbacv1.PolicyRule{APIGroups: []string{"kuadrant.io"}, Resources: []string{"authpolicies"}, Verbs: []string{"get", "delete"}}
	override := func(name string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{"kuadrant.io"}, Resources: []string{"authpolicies"}, ResourceNames: []string{name}, Verbs: []string{"override"}}
	}
	g.c.MustAddUser(t, delegate, nil, change, override("gw-auth"))
	g.c.MustAddUser(t, neighbour, nil, change, override("another"))

	w := remove("INFRA", "authpolicy/gw-auth")
	g.seen(t, w)
	got := g.run(outsider, w)
	turnedAway(t, got, "OverrideRemoved")
	line := canI.FindStringSubmatch(got.Stderr)
	require.NotEmpty(t, line, got.Stderr)
	assert.Equal(t, g.of("auth can-i override authpolicies.kuadrant.io/gw-auth -n INFRA"), line[1])
	for user, may := range map[string]string{outsider: "no\n", neighbour: "no\n", delegate: "yes\n", entitled: "yes\n"} {
		assert.Equal(t, may, g.c.Kubectl(append([]string{"--as", user}, strings.Fields(line[1])...)...).Stdout, user)
	}
	turnedAway(t, g.run(neighbour, w), "OverrideRemoved")
	got = g.run(delegate, w)
	succeed(t, got)
	assert.Contains(t, got.Stderr, "would not any more")
}

// finalizedPolicy has a finalizer on the policy: its deletion is judged, it
// counts until it is gone, and the finalizer can be taken off by anyone.
func finalizedPolicy(t *testing.T, g ground) {
	succeed(t, g.apply(strings.Replace(world, "name: gw-auth", "name: gw-auth, finalizers: [e2e.example.com/hold]", 1)))
	w := kubectl("-n", "INFRA", "delete", "authpolicy/gw-auth", "--wait=false")
	g.seen(t, w)
	turnedAway(t, g.run(outsider, w), "OverrideRemoved")
	succeed(t, g.run(entitled, w))

	turnedAway(t, g.run(outsider, apply(route(onInner, byPath))), "OverrideEvaded")
	turnedAway(t, g.run(outsider, patch("INFRA", "authpolicy/gw-auth", `{"spec":{"overrides":{"rules":{"authentication":{"sso":{"issuer":"theirs"}}}}}}`)), "OverrideRemoved")
	succeed(t, g.run(outsider, patch("INFRA", "authpolicy/gw-auth", `{"metadata":{"finalizers":null}}`)))
	assert.Equal(t, 1, g.c.Kubectl("-n", g.infra, "get", "authpolicy/gw-auth").Code, "it is gone")
	soon(t, func() bool { return g.run(outsider, apply(route(onInner, byPath)).dryRun()).Code == 0 }, "it counts no more")
}

// collectedPolicy gets an owner from who may give it one: the owner's deletion
// is then anyone's, and the garbage collector is not held up.
func collectedPolicy(t *testing.T, g ground) {
	succeed(t, g.apply(world+"\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: INFRA, name: release}\n"))
	uid := g.c.Kubectl("-n", g.infra, "get", "configmap/release", "-o", "jsonpath={.metadata.uid}").Stdout
	w := patch("INFRA", "authpolicy/gw-auth", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"release","uid":"`+uid+`"}]}}`)
	g.seen(t, w)
	turnedAway(t, g.run(outsider, w), "OverrideEvaded", "would be deleted with ConfigMap release, which is made its owner")
	got := g.run(entitled, w)
	succeed(t, got)
	assert.Contains(t, got.Stderr, "Warning: ")

	succeed(t, g.run(outsider, remove("INFRA", "configmap/release")))
	soon(t, func() bool { return g.c.Kubectl("-n", g.infra, "get", "authpolicy/gw-auth").Code != 0 }, "it is not collected")
}

// weakenedBefore has a gate that was there before the override: its writer is
// told, and may go on editing.
func weakenedBefore(t *testing.T, g ground) {
	gate := func(key string) string {
		return auth("APP", "route-auth", routeRef("toystore"), "when: [{predicate: 'false'}], rules: {authorization: {"+key+": {}}}")
	}
	succeed(t, g.apply(strings.Replace(world, held, "", 1)+gate("opa")))
	got := g.run(entitled, apply(held))
	succeed(t, got)
	assert.Contains(t, got.Stderr, "decides whether ")
	g.seen(t, remove("INFRA", "authpolicy/gw-auth"))

	got = g.run(outsider, apply(gate("cel")))
	succeed(t, got)
	assert.Contains(t, got.Stderr, "decides whether ")
	succeed(t, g.run(outsider, patch("APP", "authpolicy/route-auth", `{"spec":{"when":null}}`)))
	turnedAway(t, g.run(outsider, apply(gate("cel"))), "OverrideWeakened")
}

var annotateIt = regexp.MustCompile(`kubectl (annotate --overwrite lime\.policies\.example\.com gw-coat -n \S+ overrule\.dev/acknowledge-blast-radius=)([0-9a-f]{16})`)

// acknowledgedBlast deletes a policy whose kind may not change more than one path
// unseen: with the acknowledgement of just that, and with the right to do so.
func acknowledgedBlast(t *testing.T, g ground) {
	succeed(t, g.apply(strings.Replace(coated("Lime"), route(onEdge, byPath), "", 1)))
	succeed(t, g.apply(route(onEdge, byPath))) // which is in its own namespace
	w := remove("INFRA", "lime/gw-coat")
	g.seen(t, w)
	got := g.run(entitled, w)
	turnedAway(t, got, "BlastRadius", g.of("effective policy of Lime changes on 2 paths in 1 namespace (2 lose colors), more than the 1 that one write may change unseen"))
	line := annotateIt.FindStringSubmatch(got.Stderr)
	require.NotEmpty(t, line, got.Stderr)
	assert.Contains(t, got.Stderr, "Warning: the overrides of Lime")

	succeed(t, g.run(entitled, kubectl(strings.Fields(line[1]+"0123456789abcdef")...)))
	turnedAway(t, g.run(entitled, w), "BlastRadius", "the acknowledgement 0123456789abcdef is for another change than this one")

	succeed(t, g.run(outsider, kubectl(strings.Fields(line[1]+line[2])...)))
	turnedAway(t, g.run(outsider, w), "OverrideRemoved")
	succeed(t, g.run(entitled, w))
}
