//go:build e2e

package e2e

import (
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// duplicateRows are attempts to replace the source of an override by a second
// object first, which garbage collection or a namespace deletion removes later
// without a review.
var duplicateRows = map[string]row{
	"policy-owner-renamed":      sequence(renameOwner),
	"policy-doubled-owned":      duplicate{manifest: secondPolicy, owned: true, deleteOriginal: deletePolicy},
	"policy-doubled-finalizer":  duplicate{manifest: secondPolicy, deleteDuplicate: remove("INFRA", "authpolicy/gw-too"), deleteOriginal: deletePolicy},
	"grant-doubled-owned":       duplicate{objects: granted, manifest: secondGrant, owned: true, deleteOriginal: remove("INFRA", "referencegrant/leave")},
	"grant-doubled-finalizer":   duplicate{objects: granted, manifest: secondGrant, deleteDuplicate: remove("INFRA", "referencegrant/leave-too"), deleteOriginal: remove("INFRA", "referencegrant/leave")},
	"profile-doubled-owned":     duplicateProfile("Zinc", true),
	"profile-doubled-finalizer": duplicateProfile("Brass", false),

	"profiles-at-once": sequence(deleteProfilesConcurrently),

	"policy-doubled-by-grant":     substitute{manifest: duplicateIn("", ownedInINFRA), write: deletePaint},
	"policy-doubled-in-namespace": substitute{manifest: duplicateIn(ownedByRole, ""), write: deletePaint},
	"policy-doubled-on-class":     substitute{objects: gatewayWithoutClassPolicy, manifest: classed, then: toClass, write: remove("INFRA", "paint/gw-paint")},
	"policy-to-class-with-owner":  substitute{objects: gatewayWithoutClassPolicy, manifest: ownedClass, then: toClass, write: paintClass, code: "OverrideEvaded"},
	"policy-beneath-owned": substitute{
		objects:  strings.Replace(gatewayWithoutClassPolicy, "gatewayClassName: bypass", "gatewayClassName: INFRA-new", 1) + object("GatewayClass", "name: INFRA-new", "{controllerName: example.com/gateways}"),
		manifest: object("Paint", "namespace: INFRA, name: class-paint"+ownedInINFRA, "{"+onClass+", overrides: {colors: {wall: white}}}"), write: remove("INFRA", "paint/gw-paint"),
	},
	"namespace-doubled": substitute{
		manifest: duplicateIn("", ""), then: kubectl("delete", "namespace/INFRA-two", "--wait=false"),
		write: kubectl("delete", "namespace/INFRA-sec", "--wait=false"), code: "OverrideEvaded",
	},
}

var (
	deletePolicy = remove("INFRA", "authpolicy/gw-auth")
	secondPolicy = auth("INFRA", "gw-too", gatewayRef("edge"), overrides)
	secondGrant  = strings.Replace(grant("INFRA-sec", "Paint", "Gateway", "edge"), "name: leave", "name: leave-too", 1)
)

// duplicate creates a second object with the same effect as the first one that is
// about to be deleted: it has an owner, or a deletion that waits for a finalizer.
type duplicate struct {
	objects         string // empty: baseObjects
	manifest        string
	owned           bool
	deleteDuplicate command // deletes it
	deleteOriginal  command // deletes the first one
	// released is the second object without its finalizer; nil where its
	// namespace holds it.
	released *command
}

func (d duplicate) run(t *testing.T, g testNamespaces) {
	const owner = "ownerReferences: [{apiVersion: v1, kind: Namespace, name: missing, uid: 5f0d4b1e-0000-4000-8000-000000000009}], "
	world, extra := orDefault(d.objects, baseObjects), "finalizers: [e2e.example.com/hold], "
	succeed(t, g.apply(world))
	g.awaitDenial(t, d.deleteOriginal)
	if d.owned {
		// The finalizer delays the garbage collector, as an existing owner would.
		extra += owner
	}
	if d.released != nil {
		t.Cleanup(func() { succeed(t, g.runAs(privileged, *d.released)) })
	}
	succeed(t, g.runAs(unprivileged, apply(strings.Replace(d.manifest, "metadata: {", "metadata: {"+extra, 1))))
	if !d.owned {
		succeed(t, g.runAs(unprivileged, command{args: append(d.deleteDuplicate.args, "--wait=false")}))
	}
	requireDenial(t, g.runAs(unprivileged, d.deleteOriginal), d.code())
	succeed(t, g.runAs(privileged, d.deleteOriginal))
}

func (d duplicate) code() string {
	if d.objects == "" {
		return "OverrideRemoved"
	}
	return "OverrideEvaded"
}

// duplicateProfile creates a second profile of a kind and deletes the first one.
func duplicateProfile(kind string, owned bool) duplicate {
	name := "policyprofile/" + strings.ToLower(kind) + "s"
	released := kubectl("patch", name+"-too", "--type=merge", "-p", `{"metadata":{"finalizers":null,"ownerReferences":null}}`)
	return duplicate{
		objects: objectsWithOverride(kind), owned: owned, released: &released,
		manifest:       strings.Replace(profile(kind, bothBlocks, testKinds[kind].profile), "s}\n", "s-too}\n", 1),
		deleteOriginal: kubectl("delete", name), deleteDuplicate: kubectl("delete", name+"-too"),
	}
}

// deleteProfilesConcurrently deletes the two profiles of a kind at the same time:
// one deletion may pass, the other profile has to stay.
func deleteProfilesConcurrently(t *testing.T, g testNamespaces) {
	one := profile("Cobalt", bothBlocks, testKinds["Cobalt"].profile)
	both := []command{kubectl("delete", "policyprofile/cobalts"), kubectl("delete", "policyprofile/cobalts-too")}
	succeed(t, g.apply(objectsWithOverride("Cobalt")))
	g.awaitDenial(t, both[0])
	for range 10 {
		succeed(t, g.apply(one+strings.Replace(one, "s}\n", "s-too}\n", 1)))
		for _, w := range both {
			soon(t, func() bool { return g.runAs(unprivileged, w.dryRun()).Code == 0 }, "the other profile is not observed")
		}
		var passed atomic.Int32
		var wait sync.WaitGroup
		for _, w := range both {
			wait.Go(func() {
				if g.runAs(unprivileged, w).Code == 0 {
					passed.Add(1)
				}
			})
		}
		wait.Wait()
		require.LessOrEqual(t, passed.Load(), int32(1))
	}
}

// substitute creates a second policy with the same effect as the first one, which
// depends on an object that is about to be deleted.
type substitute struct {
	objects  string // empty: granted
	manifest string
	then     command // run after the manifest is applied; optional
	write    command // makes the first policy ineffective
	code     string  // default: OverrideRemoved
}

// run uses an owner that exists: an owner of a namespace cannot be delayed by a
// finalizer without a deletion.
func (r substitute) run(t *testing.T, g testNamespaces) {
	const owner = "\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: INFRA-own}\n" +
		"\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: INFRA, name: own}\n"
	succeed(t, g.apply(orDefault(r.objects, granted)+owner))
	t.Cleanup(func() { g.c.Kubectl("delete", "clusterrole/"+g.expand("INFRA-own")) })
	uid := func(args ...string) string {
		return g.c.Kubectl(append(args, "-o", "jsonpath={.metadata.uid}")...).Stdout
	}
	g.awaitDenial(t, r.write)
	uids := strings.NewReplacer(
		"ROLE", uid("get", "clusterrole/"+g.expand("INFRA-own")), "CONFIG", uid("-n", g.infra, "get", "configmap/own"))
	succeed(t, g.runAs(unprivileged, apply(uids.Replace(r.manifest))))
	if r.then.args != nil {
		succeed(t, g.runAs(unprivileged, r.then))
	}
	requireDenial(t, g.runAs(unprivileged, r.write), orDefault(r.code, "OverrideRemoved"))
	succeed(t, g.runAs(privileged, r.write))
}

const (
	ownedByRole  = ", ownerReferences: [{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: INFRA-own, uid: ROLE}]"
	ownedInINFRA = ", ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: own, uid: CONFIG}]"
)

var (
	deletePaint = remove("INFRA-sec", "paint/gw-paint")
	// gatewayWithoutClassPolicy has the override on a gateway whose class has no
	// policy.
	gatewayWithoutClassPolicy = namespaces + gateway("edge", onHTTP) + route(onEdge, byPath) + paintPolicy("gw-paint", "targetRef: {"+gatewayRef("edge")+"}")
	ownedClass                = object("GatewayClass", "name: INFRA-new"+ownedByRole, "{controllerName: example.com/gateways}")
	classed                   = ownedClass + paintPolicy("class-paint", onClass)
	toClass                   = patch("INFRA", "gateway/edge", `{"spec":{"gatewayClassName":"INFRA-new"}}`)
	paintClass                = patch("INFRA", "paint/gw-paint", `{"spec":{"targetRef":{"group":"gateway.networking.k8s.io","kind":"GatewayClass","name":"INFRA-new"}}}`)
)

const onClass = "targetRef: {group: gateway.networking.k8s.io, kind: GatewayClass, name: INFRA-new}"

// duplicateIn returns the policy and the grant in another namespace, with
// additional metadata for that namespace and for the grant.
func duplicateIn(namespace, leave string) string {
	return "\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: INFRA-two" + namespace + "}\n" +
		strings.Replace(grant("INFRA-two", "Paint", "Gateway", "edge"), "name: leave", "name: leave-two"+leave, 1) +
		paintPolicyIn("INFRA-two", "gw-paint", "targetRef: {"+gatewayRef("edge")+", namespace: INFRA}")
}

// renameOwner changes the name in a policy's owner reference to a name that does
// not exist: the garbage collector treats the owner as deleted.
func renameOwner(t *testing.T, g testNamespaces) {
	succeed(t, g.apply(namespaces+"\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: INFRA, name: release}\n"))
	uid := g.c.Kubectl("-n", g.infra, "get", "configmap/release", "-o", "jsonpath={.metadata.uid}").Stdout
	owner := "name: gw-auth, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: release, uid: " + uid + "}]"
	succeed(t, g.apply(strings.Replace(baseObjects, "name: gw-auth", owner, 1)))
	g.awaitDenial(t, deletePolicy)
	w := edit("INFRA", "authpolicy/gw-auth", `[{"op":"replace","path":"/metadata/ownerReferences/0/name","value":"missing"}]`)
	requireDenial(t, g.runAs(unprivileged, w), "OverrideEvaded")
	succeed(t, g.runAs(privileged, w))
}
