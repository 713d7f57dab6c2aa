//go:build e2e

package e2e

import (
	"strings"
	"testing"
)

// aroundDoubles are rows in which something else is made to stand in first, and
// taken away by the system afterwards, when nobody is asked.
var aroundDoubles = map[string]row{
	"policy-owner-renamed":     story(renamedOwner),
	"policy-doubled-owned":     double{of: secondPolicy, owned: true, first: deletePolicy},
	"policy-doubled-finalizer": double{of: secondPolicy, second: remove("INFRA", "authpolicy/gw-too"), first: deletePolicy},
	"grant-doubled-owned":      double{world: granted, of: secondGrant, owned: true, first: remove("INFRA", "referencegrant/leave")},
	"grant-doubled-finalizer":  double{world: granted, of: secondGrant, second: remove("INFRA", "referencegrant/leave-too"), first: remove("INFRA", "referencegrant/leave")},
}

var (
	deletePolicy = remove("INFRA", "authpolicy/gw-auth")
	secondPolicy = auth("INFRA", "gw-too", gatewayRef("edge"), overrides)
	secondGrant  = strings.Replace(grant("INFRA-sec", "Paint", "Gateway", "edge"), "name: leave", "name: leave-too", 1)
)

// double has a second object that gives the same as the first one, and that is
// about to go: by its owner, or by a deletion that waits for a finalizer.
type double struct {
	world  string // empty: the usual one
	of     string
	owned  bool
	second command // deletes it
	first  command // deletes the first one
}

func (d double) play(t *testing.T, g ground) {
	const owner = "ownerReferences: [{apiVersion: v1, kind: Namespace, name: nobody, uid: 5f0d4b1e-0000-4000-8000-000000000009}], "
	world, extra := orElse(d.world, world), "finalizers: [e2e.example.com/hold], "
	succeed(t, g.apply(world))
	g.seen(t, d.first)
	if d.owned {
		// The finalizer keeps the garbage collector waiting, as an owner that is
		// there would.
		extra += owner
	}
	succeed(t, g.run(outsider, apply(strings.Replace(d.of, "metadata: {", "metadata: {"+extra, 1))))
	if !d.owned {
		succeed(t, g.run(outsider, command{args: append(d.second.args, "--wait=false")}))
	}
	turnedAway(t, g.run(outsider, d.first), d.code())
	succeed(t, g.run(entitled, d.first))
}

func (d double) code() string {
	if d.world == "" {
		return "OverrideRemoved"
	}
	return "OverrideEvaded"
}

// renamedOwner edits the owner that a policy has so that there is none of that
// name: the garbage collector takes that for an owner that is gone.
func renamedOwner(t *testing.T, g ground) {
	succeed(t, g.apply(namespaces+"\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: INFRA, name: release}\n"))
	uid := g.c.Kubectl("-n", g.infra, "get", "configmap/release", "-o", "jsonpath={.metadata.uid}").Stdout
	owner := "name: gw-auth, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: release, uid: " + uid + "}]"
	succeed(t, g.apply(strings.Replace(world, "name: gw-auth", owner, 1)))
	g.seen(t, deletePolicy)
	w := edit("INFRA", "authpolicy/gw-auth", `[{"op":"replace","path":"/metadata/ownerReferences/0/name","value":"nobody"}]`)
	turnedAway(t, g.run(outsider, w), "OverrideEvaded")
	succeed(t, g.run(entitled, w))
}
