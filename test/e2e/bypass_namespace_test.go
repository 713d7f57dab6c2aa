//go:build e2e

package e2e

import "strings"

// others is a third namespace, that of a security team.
const others = "\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: INFRA-sec, labels: {bypass: INFRA}}\n"

var (
	// granted has the override in another namespace, which a ReferenceGrant
	// allows.
	granted = namespaces + others + gateway("edge", onHTTP) + route(onEdge, byPath) + grant("INFRA-sec", "Paint", "Gateway", "edge") +
		paintPolicyIn("INFRA-sec", "gw-paint", "targetRef: {"+gatewayRef("edge")+", namespace: INFRA}")
	// labelled has the route on a listener for namespaces with a label, which has
	// the override; the other listener is for namespaces with another label.
	labelled = object("Namespace", "name: INFRA", "{}") + object("Namespace", "name: APP, labels: {stage: prod}", "{}") +
		gateway("edge", listenerForStage("http", "80", "prod"), listenerForStage("plain", "8080", "dev")) + route(onEdge, byPath) + onSection(gatewayRef("edge"), "http")
	// selected has an override on the namespaces with a label.
	selected = object("Namespace", "name: INFRA", "{}") + object("Namespace", "name: APP, labels: {bypass: INFRA}", "{}") +
		gateway("edge", onHTTP) + route(onEdge, byPath) +
		primerPolicy("INFRA", "targetSelectors: [{group: '', kind: Namespace, matchLabels: {bypass: INFRA}}]")
	largeOwners          = `[{"apiVersion":"nope.example.com/v1","kind":"Nope","uid":"5f0d4b1e-0000-4000-8000-000000000077","name":"` + strings.Repeat("<", 1400<<10) + `"}]`
	ownedByMissingObject = `{"metadata":{"ownerReferences":[{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","name":"missing","uid":"5f0d4b1e-0000-4000-8000-000000000003"}]}}`
)

// listenerForStage returns a listener for the routes of namespaces with a label.
func listenerForStage(name, port, stage string) string {
	return "{name: " + name + ", protocol: HTTP, port: " + port + ", allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {stage: " + stage + "}}}}}"
}

// grant returns a ReferenceGrant for policies of a namespace to target objects in
// INFRA; for those of INFRA, in APP.
func grant(from, kind, target, name string) string {
	namespace := "INFRA"
	if from == "INFRA" {
		namespace = "APP"
	}
	to := "{group: gateway.networking.k8s.io, kind: " + target + "}"
	if name != "" {
		to = "{group: gateway.networking.k8s.io, kind: " + target + ", name: " + name + "}"
	}
	return object("ReferenceGrant", "namespace: "+namespace+", name: leave",
		"{from: [{group: policies.example.com, kind: "+kind+", namespace: "+from+"}], to: ["+to+"]}")
}

// namespaceRows are writes of namespaces and ReferenceGrants.
var namespaceRows = map[string]row{
	"namespace-label-listener": bypass{
		objects: labelled, code: "OverrideEvaded",
		write: kubectl("label", "--overwrite", "namespace/APP", "stage=dev"),
	},
	"namespace-label-by-status": bypass{
		objects: labelled, code: "OverrideEvaded",
		write: kubectl("patch", "namespace/APP", "--subresource=status", "--type=merge", "-p", `{"metadata":{"labels":{"stage":"dev"}}}`),
	},
	"namespace-label-policy": bypass{
		objects: selected, code: "OverrideEvaded",
		write: kubectl("label", "namespace/APP", "bypass-"),
	},
	"namespace-of-policy": bypass{
		objects: granted, code: "OverrideEvaded",
		write: kubectl("delete", "namespace/INFRA-sec", "--timeout=2m"),
	},
	"namespace-of-gateway": bypass{
		objects: namespaces + others + gateway("edge", onHTTP) + object("Gateway", "namespace: INFRA-sec, name: inner", "{gatewayClassName: bypass, listeners: ["+onHTTP+"]}") +
			route(onEdge+", {namespace: INFRA-sec, name: inner}", byPath) + gatewayOverride,
		code:  "OverrideEvaded",
		write: kubectl("delete", "namespace/INFRA", "--timeout=2m"),
	},
	"namespace-owner": bypass{
		objects: granted, code: "OverrideEvaded",
		write: kubectl("patch", "namespace/INFRA-sec", "--type=merge", "-p", ownedByMissingObject),
	},
	"grant-deleted": bypass{
		objects: granted, code: "OverrideEvaded",
		write: remove("INFRA", "referencegrant/leave"),
	},
	"grant-narrowed": bypass{
		objects: granted, code: "OverrideEvaded",
		write: apply(grant("INFRA-sec", "Paint", "Gateway", "inner")),
	},
	"grant-owner": bypass{
		objects: granted, code: "OverrideEvaded",
		write: patch("INFRA", "referencegrant/leave", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"missing","uid":"5f0d4b1e-0000-4000-8000-000000000004"}]}}`),
	},
	"grants-definition": bypass{
		objects: granted, code: "OverrideEvaded", dry: true,
		write: kubectl("delete", "crd/referencegrants.gateway.networking.k8s.io"),
	},
}
