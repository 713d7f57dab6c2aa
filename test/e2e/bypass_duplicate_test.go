//go:build e2e

package e2e

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// aroundDoubles are rows in which something else is made to stand in first, and
// taken away by the system afterwards, when nobody is asked.
var aroundDoubles = map[string]row{
	"policy-owner-renamed":      story(renamedOwner),
	"policy-doubled-owned":      double{of: secondPolicy, owned: true, first: deletePolicy},
	"policy-doubled-finalizer":  double{of: secondPolicy, second: remove("INFRA", "authpolicy/gw-too"), first: deletePolicy},
	"grant-doubled-owned":       double{world: granted, of: secondGrant, owned: true, first: remove("INFRA", "referencegrant/leave")},
	"grant-doubled-finalizer":   double{world: granted, of: secondGrant, second: remove("INFRA", "referencegrant/leave-too"), first: remove("INFRA", "referencegrant/leave")},
	"profile-doubled-owned":     profileDoubled("Zinc", true),
	"profile-doubled-finalizer": profileDoubled("Brass", false),

	"profiles-at-once": story(profilesAtOnce),

	"policy-doubled-by-grant":     standIn{of: doubleIn("", ownedInINFRA), first: deletePaint},
	"policy-doubled-in-namespace": standIn{of: doubleIn(ownedByRole, ""), first: deletePaint},
	"policy-doubled-on-class":     standIn{world: classless, of: classed, and: toClass, first: remove("INFRA", "paint/gw-paint")},
	"policy-to-class-with-owner":  standIn{world: classless, of: ownedClass, and: toClass, first: paintClass, code: "OverrideEvaded"},
	"policy-beneath-owned": standIn{
		world: strings.Replace(classless, "gatewayClassName: around", "gatewayClassName: INFRA-new", 1) + object("GatewayClass", "name: INFRA-new", "{controllerName: example.com/gateways}"),
		of:    object("Paint", "namespace: INFRA, name: class-paint"+ownedInINFRA, "{"+onClass+", overrides: {colors: {wall: white}}}"), first: remove("INFRA", "paint/gw-paint"),
	},
	"namespace-doubled": standIn{
		of: doubleIn("", ""), and: kubectl("delete", "namespace/INFRA-two", "--wait=false"),
		first: kubectl("delete", "namespace/INFRA-sec", "--wait=false"), code: "OverrideEvaded",
	},
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
	// released is the second one without its finalizer, empty where its namespace
	// holds it.
	released *command
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
	if d.released != nil {
		t.Cleanup(func() { succeed(t, g.run(entitled, *d.released)) })
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

// profileDoubled has a second profile of a kind in place of the first one.
func profileDoubled(kind string, owned bool) double {
	name := "policyprofile/" + strings.ToLower(kind) + "s"
	released := kubectl("patch", name+"-too", "--type=merge", "-p", `{"metadata":{"finalizers":null,"ownerReferences":null}}`)
	return double{
		world: coated(kind), owned: owned, released: &released,
		of:    strings.Replace(profile(kind, bothBlocks, madeKinds[kind].profile), "s}\n", "s-too}\n", 1),
		first: kubectl("delete", name), second: kubectl("delete", name+"-too"),
	}
}

// profilesAtOnce has two profiles of a kind deleted at the same moment: one may go, and
// then the other has to stay.
func profilesAtOnce(t *testing.T, g ground) {
	one := profile("Cobalt", bothBlocks, madeKinds["Cobalt"].profile)
	both := []command{kubectl("delete", "policyprofile/cobalts"), kubectl("delete", "policyprofile/cobalts-too")}
	succeed(t, g.apply(coated("Cobalt")))
	g.seen(t, both[0])
	for range 10 {
		succeed(t, g.apply(one+strings.Replace(one, "s}\n", "s-too}\n", 1)))
		for _, w := range both {
			soon(t, func() bool { return g.run(outsider, w.dryRun()).Code == 0 }, "the other profile is not seen")
		}
		var passed atomic.Int32
		var wait sync.WaitGroup
		for _, w := range both {
			wait.Go(func() {
				if g.run(outsider, w).Code == 0 {
					passed.Add(1)
				}
			})
		}
		wait.Wait()
		require.LessOrEqual(t, passed.Load(), int32(1))
	}
}

// standIn has a second policy, which gives the same as the first one and rests on an
// object that is about to go.
type standIn struct {
	world string // empty: that of a grant
	of    string
	and   command // afterwards, none if empty
	first command // takes the first one out of force
	code  string  // empty: that of a deletion
}

// play has an owner that exists: that of a namespace cannot wait for a finalizer
// without being deleted.
func (r standIn) play(t *testing.T, g ground) {
	const owner = "\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: INFRA-own}\n" +
		"\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: INFRA, name: own}\n"
	succeed(t, g.apply(orElse(r.world, granted)+owner))
	t.Cleanup(func() { g.c.Kubectl("delete", "clusterrole/"+g.of("INFRA-own")) })
	uid := func(args ...string) string {
		return g.c.Kubectl(append(args, "-o", "jsonpath={.metadata.uid}")...).Stdout
	}
	g.seen(t, r.first)
	uids := strings.NewReplacer(
		"ROLE", uid("get", "clusterrole/"+g.of("INFRA-own")), "CONFIG", uid("-n", g.infra, "get", "configmap/own"))
	succeed(t, g.run(outsider, apply(uids.Replace(r.of))))
	if r.and.args != nil {
		succeed(t, g.run(outsider, r.and))
	}
	turnedAway(t, g.run(outsider, r.first), orElse(r.code, "OverrideRemoved"))
	succeed(t, g.run(entitled, r.first))
}

const (
	ownedByRole  = ", ownerReferences: [{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: INFRA-own, uid: ROLE}]"
	ownedInINFRA = ", ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: own, uid: CONFIG}]"
)

var (
	deletePaint = remove("INFRA-sec", "paint/gw-paint")
	// classless has the override on a gateway of a class without a policy.
	classless  = namespaces + gateway("edge", onHTTP) + route(onEdge, byPath) + paint("gw-paint", "targetRef: {"+gatewayRef("edge")+"}")
	ownedClass = object("GatewayClass", "name: INFRA-new"+ownedByRole, "{controllerName: example.com/gateways}")
	classed    = ownedClass + paint("class-paint", onClass)
	toClass    = patch("INFRA", "gateway/edge", `{"spec":{"gatewayClassName":"INFRA-new"}}`)
	paintClass = patch("INFRA", "paint/gw-paint", `{"spec":{"targetRef":{"group":"gateway.networking.k8s.io","kind":"GatewayClass","name":"INFRA-new"}}}`)
)

const onClass = "targetRef: {group: gateway.networking.k8s.io, kind: GatewayClass, name: INFRA-new}"

// doubleIn is the policy and the grant of the world once more, for a namespace of
// their own, with what the metadata of that namespace and of the grant has besides.
func doubleIn(namespace, leave string) string {
	return "\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: INFRA-two" + namespace + "}\n" +
		strings.Replace(grant("INFRA-two", "Paint", "Gateway", "edge"), "name: leave", "name: leave-two"+leave, 1) +
		paintIn("INFRA-two", "gw-paint", "targetRef: {"+gatewayRef("edge")+", namespace: INFRA}")
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
