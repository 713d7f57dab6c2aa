//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
)

// testKinds are the policy kinds of these tests. label: the CRD has the label of
// policy kinds. profile: additional fields of the PolicyProfile; empty for kinds
// without one.
var testKinds = map[string]struct {
	label   bool
	profile string
}{
	"Paint": {false, `
  targets: {fields: [targetRef], selectors: [targetSelectors], namespaces: referenceGrant, classFrom: ["*"]}
  strategy: {allowed: [merge, atomic], annotation: {name: policies.example.com/inherit, values: {all: {strategy: merge, overrides: true}}}}`},
	"Primer": {false, `
  levels: [Gateway, Listener, Service, RouteNamespace, Route, Rule, Backend]
  shortPaths: true
  targets: {fields: [targetRef], selectors: [targetSelectors], namespaces: free, kinds: [{group: "", kind: Service, section: PortName}, {group: "", kind: Namespace}, {group: gateway.networking.k8s.io, kind: HTTPRoute}]}`},
	"Varnish": {false, "\n  targets: {fields: [targetRef]}\n  sameTarget: none"},
	"Lime":    {false, "\n  targets: {fields: [targetRef]}\n  blastRadius: 1"},
	// One kind for each row that deletes or changes its CRD or profile.
	"Enamel":  {false, "\n  targets: {fields: [targetRef]}"},
	"Veneer":  {false, "\n  targets: {fields: [targetRef]}"},
	"Shellac": {false, "\n  targets: {fields: [targetRef]}"},
	"Resin":   {false, "\n  targets: {fields: [targetRef]}"},
	"Putty":   {false, "\n  targets: {fields: [targetRef]}"},
	"Rust":    {false, "\n  targets: {fields: [targetRef]}"},
	"Patina":  {false, "\n  targets: {fields: [targetRef]}"},
	"Primary": {false, "\n  targets: {fields: [targetRef]}\n  strategy: {field: strategy, allowed: [atomic, merge]}"},
	"Tint":    {true, ""},
	"Stain":   {true, ""},
	"Lacquer": {true, ""},
	"Glue":    {true, ""},
	"Wax":     {true, ""},
	"Oil":     {true, ""},
	"Henna":   {true, ""},
	"Gloss":   {false, "\n  targets: {fields: [targetRef]}"},
	"Satin":   {false, "\n  targets: {fields: [targetRef]}\n  gates: [when]\n  alternatives: [colors]"},
	"Matt":    {false, "\n  targets: {fields: [targetRef]}"},
	"Size":    {true, "\n  targets: {fields: [targetRef]}\n  gates: [when]"},
	"Ochre":   {false, "\n  targets: {fields: [targetRef]}"},
	"Umber":   {true, ""},
	"Sienna":  {true, ""},
	"Garnet":  {false, "\n  targets: {fields: [targetRef]}"},
	"Opal":    {false, "\n  targets: {fields: [targetRef]}"},
	"Chalk":   {false, "\n  targets: {fields: [targetRef]}\n  actions: {OverrideWeakened: Warn}"},
	"Coral":   {false, "\n  targets: {fields: [targetRef]}\n  ignore: [replicas]"},
	"Ivory":   {false, "\n  targets: {fields: [targetRef]}"},
	"Amber":   {false, "\n  targets: {fields: [targetRef]}"},
	"Khaki":   {false, "\n  targets: {fields: [targetRef]}"},
	"Ebony":   {false, "\n  targets: {fields: [targetRef]}"},
	"Slate":   {false, "\n  targets: {fields: [targetRef]}"},
	"Zinc":    {false, "\n  targets: {fields: [targetRef]}"},
	"Brass":   {false, "\n  targets: {fields: [targetRef]}"},
	"Cobalt":  {false, "\n  targets: {fields: [targetRef]}"},
	"Copper":  {false, "\n  targets: {fields: [targetRef]}\n  routeOverridesBind: AllNamespaces"},
	"Nickel":  {false, "\n  targets: {fields: [targetRef]}\n  routeOverridesBind: AllNamespaces"},
}

// definition returns the CRD of a kind.
func definition(kind string, label bool) string {
	labels := "{}"
	if label {
		labels = "{gateway.networking.k8s.io/policy: inherited}"
	}
	scale := ""
	if kind == "Ochre" {
		scale = ", subresources: {scale: {specReplicasPath: .spec.overrides.limit, statusReplicasPath: .status.limit}}"
	}
	status, more := "", ""
	switch kind {
	case "Coral":
		status, more = ", subresources: {status: {}}", prunedVersion
	case "Ebony":
		more = prunedVersion
	}
	return strings.NewReplacer("SCALE", scale, "STATUS", status, "MORE", more, "KIND", kind, "ONE", strings.ToLower(kind), "LABELS", labels, "SCHEMA", kindSchema).Replace(`
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ONEs.policies.example.com, labels: LABELS}
spec:
  group: policies.example.com
  scope: Namespaced
  names: {kind: KIND, plural: ONEs, singular: ONE}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: SCHEMA}STATUS}
  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: SCHEMA}SCALE}MORE
`)
}

// secondDefinition returns another CRD of the same kind.
func secondDefinition(kind, plural string) string {
	one := strings.ToLower(kind)
	return strings.NewReplacer("name: "+one+"s", "name: "+plural, "plural: "+one+"s, singular: "+one, "plural: "+plural).Replace(definition(kind, true))
}

// prunedVersion is a version whose schema contains only the target of a spec.
const prunedVersion = `
  - name: v1alpha9
    served: true
    storage: false
    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
    schema: {openAPIV3Schema: {type: object, properties: {status: {type: object, x-kubernetes-preserve-unknown-fields: true}, spec: {type: object, properties: {
      replicas: {type: integer}, targetRef: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}}}`

// kindSchema is the schema of all these kinds: a spec of any content.
const kindSchema = `{type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {` +
	`defaults: {type: object, x-kubernetes-preserve-unknown-fields: true}, overrides: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}}`

// profile returns the PolicyProfile of a kind.
func profile(kind, blocks, rest string) string {
	return fmt.Sprintf(`
---
apiVersion: overrule.dev/v1alpha1
kind: PolicyProfile
metadata: {name: %ss}
spec:
  group: policies.example.com
  kind: %s
  class: inherited
  blocks: {%s}%s
`, strings.ToLower(kind), kind, blocks, rest)
}

const bothBlocks = "defaults: [defaults], overrides: [overrides]"

// defineKinds creates the CRDs and profiles of the kinds, and the GatewayClass.
func (c *cluster) defineKinds(t *testing.T) {
	t.Helper()
	var definitions, profiles, names []string
	for kind, k := range testKinds {
		definitions = append(definitions, definition(kind, k.label))
		names = append(names, "crd/"+strings.ToLower(kind)+"s.policies.example.com")
		if k.profile != "" {
			profiles = append(profiles, profile(kind, bothBlocks, k.profile))
			names = append(names, "policyprofile/"+strings.ToLower(kind)+"s")
		}
	}
	names = append(names, "policyprofile/puttys-too", "policyprofile/zincs-too", "policyprofile/brasss-too", "policyprofile/cobalts-too", "policyprofile/lacquers", "crd/agates.policies.example.com")
	t.Cleanup(func() {
		c.removeWebhooks(t) // its server has stopped
		succeed(t, c.Kubectl(append([]string{"delete", "--ignore-not-found", "--timeout=2m"}, names...)...))
	})
	succeed(t, c.Apply(strings.Join(definitions, "")+strings.Join(profiles, "")))
	succeed(t, c.Apply(secondDefinition("Opal", "agates"))) // older than the server
	succeed(t, c.Apply(object("GatewayClass", "name: bypass", "{controllerName: example.com/gateways}")))
}

// readKinds waits until the webhook rules name all kinds.
func (c *cluster) readKinds(t *testing.T) {
	t.Helper()
	soon(t, func() bool {
		now := c.rules(t)
		for kind := range testKinds {
			if !strings.Contains(now, `"`+strings.ToLower(kind)+`s"`) {
				return false
			}
		}
		return true
	}, "the rules do not name the kinds")
}

// warningProfile returns a copy of a built-in profile of Kuadrant that warns
// about lost overrides instead of denying them.
func warningProfile(kind string) string {
	kinds, err := policykind.BuiltinKinds()
	i := slices.IndexFunc(kinds, func(k *policykind.Kind) bool { return k.Group == "kuadrant.io" && k.Kind == kind })
	if err != nil || i < 0 {
		panic("no built-in profile of " + kind)
	}
	spec := kinds[i].PolicyProfileSpec
	spec.Actions = map[api.ReasonCode]api.Action{api.ReasonOverrideRemoved: api.Warn, api.ReasonOverrideEvaded: api.Warn}
	data, err := json.Marshal(map[string]any{
		"apiVersion": "overrule.dev/v1alpha1", "kind": "PolicyProfile", "metadata": map[string]any{"name": strings.ToLower(kind) + "-copy"}, "spec": spec,
	})
	if err != nil {
		panic(err)
	}
	return string(data)
}

// objectsWithOverride returns a gateway and a route, and an override of that kind
// on the gateway.
func objectsWithOverride(kind string) string {
	return namespaces + gateway("edge", onHTTP) + route(onEdge, byPath) +
		object(kind, "namespace: INFRA, name: gw-coat", "{targetRef: {"+gatewayRef("edge")+"}, overrides: {colors: {wall: red}}}")
}

// routeWithOverride returns a gateway and a route, and an override of that kind on
// the route.
func routeWithOverride(kind string) string {
	return namespaces + others + gateway("edge", onHTTP) + route(onEdge, adminRule) +
		object(kind, "namespace: APP, name: route-coat", "{targetRef: {"+routeRef("toystore")+"}, overrides: {colors: {wall: red}}}")
}

// paintPolicy returns a policy with an override in namespace INFRA.
func paintPolicy(name, target string) string { return paintPolicyIn("INFRA", name, target) }

func paintPolicyIn(namespace, name, target string) string {
	return object("Paint", "namespace: "+namespace+", name: "+name, "{"+target+", overrides: {colors: {wall: red}}}")
}

// primerPolicy returns a policy with an override of the kind that may target
// namespaces and Services.
func primerPolicy(namespace, target string) string {
	return object("Primer", "namespace: "+namespace+", name: primer", "{"+target+", overrides: {colors: {wall: grey}}}")
}

// kindRows are writes of CRDs and PolicyProfiles.
var kindRows = map[string]row{
	"definition-deleted": bypass{
		objects: objectsWithOverride("Tint"), code: "OverrideEvaded",
		write: kubectl("delete", "crd/tints.policies.example.com", "--timeout=2m"),
	},
	"definition-unlabelled": bypass{
		objects: objectsWithOverride("Stain"), code: "OverrideEvaded",
		write: kubectl("label", "crd/stains.policies.example.com", "gateway.networking.k8s.io/policy-"),
	},
	"definition-owner": bypass{
		objects: objectsWithOverride("Glue"), code: "OverrideEvaded",
		write: kubectl("patch", "crd/glues.policies.example.com", "--type=merge", "-p", ownedByMissingObject),
	},
	"definition-relabelled": bypass{
		objects: objectsWithOverride("Wax"), code: "OverrideEvaded",
		write: kubectl("label", "--overwrite", "crd/waxs.policies.example.com", "gateway.networking.k8s.io/policy=direct"),
	},
	"definition-in-a-deep-review": bypass{
		objects: objectsWithOverride("Henna"), code: "Invalid",
		write: kubectl("patch", "crd/hennas.policies.example.com", "--type=json", "-p",
			`[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/example","value":`+strings.Repeat("[", 9994)+strings.Repeat("]", 9994)+`},{"op":"remove","path":"/metadata/labels"}]`),
		instead: new(kubectl("label", "crd/hennas.policies.example.com", "gateway.networking.k8s.io/policy-")),
	},
	"definition-unserved": bypass{
		objects: objectsWithOverride("Oil"), code: "OverrideEvaded",
		write: kubectl("patch", "crd/oils.policies.example.com", "--type=json", "-p",
			`[{"op":"replace","path":"/spec/versions/0/served","value":false},{"op":"replace","path":"/spec/versions/1/served","value":false}]`),
	},
	"definition-pruned": bypass{
		objects: objectsWithOverride("Resin"), code: "OverrideEvaded",
		write: kubectl("patch", "crd/resins.policies.example.com", "--type=json", "-p", `[{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec",`+
			`"value":{"type":"object","properties":{"targetRef":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}]`),
	},
	"definition-version-added": bypass{
		objects: objectsWithOverride("Ivory"), code: "OverrideEvaded", contains: []string{"version v1alpha9"},
		write: kubectl("patch", "crd/ivorys.policies.example.com", "--type=json", "-p", `[{"op":"add","path":"/spec/versions/-","value":{"name":"v1alpha9","served":true,"storage":false,`+
			`"subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"targetRef":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}}}}]`),
	},
	"definition-version-pruned": bypass{
		objects: objectsWithOverride("Amber"), code: "OverrideEvaded", contains: []string{"version v1beta1"},
		write: kubectl("patch", "crd/ambers.policies.example.com", "--type=json", "-p", `[{"op":"replace","path":"/spec/versions/1/schema/openAPIV3Schema/properties/spec",`+
			`"value":{"type":"object","properties":{"targetRef":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}]`),
	},
	"definition-version-default": bypass{
		objects: objectsWithOverride("Khaki"), code: "OverrideEvaded", contains: []string{"version v1beta1"},
		write: kubectl("patch", "crd/khakis.policies.example.com", "--type=json", "-p", `[{"op":"add","path":"/spec/versions/1/schema/openAPIV3Schema/properties/spec/properties/targetRef",`+
			`"value":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"sectionName":{"type":"string","default":"nothing"}}}}]`),
	},
	"definition-default-target": bypass{
		objects: objectsWithOverride("Patina"), code: "OverrideEvaded",
		write: kubectl("patch", "crd/patinas.policies.example.com", "--type=json", "-p", `[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/targetRef",`+
			`"value":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"sectionName":{"type":"string","default":"nothing"}}}}]`),
	},
	"definition-default-strategy": bypass{
		objects: objectsWithOverride("Primary"), code: "OverrideEvaded",
		write: kubectl("patch", "crd/primarys.policies.example.com", "--type=json", "-p", `[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/overrides/properties",`+
			`"value":{"strategy":{"type":"string","default":"merge"}}}]`),
	},
	"profile-created": bypass{
		objects: objectsWithOverride("Lacquer"), code: "OverrideEvaded",
		write: apply(profile("Lacquer", "defaults: [defaults]", "\n  targets: {fields: [targetRef]}")),
	},
	"profile-of-built-in": bypass{
		objects: baseObjects, code: "OverrideEvaded", dry: true,
		write: apply(strings.Replace(profile("AuthPolicy", "defaults: [defaults]", "\n  targets: {fields: [targetRef]}"), "group: policies.example.com", "group: kuadrant.io", 1)),
	},
	"profile-of-two": bypass{
		objects: objectsWithOverride("Putty") + strings.Replace(profile("Putty", "defaults: [defaults]", "\n  targets: {fields: [targetRef]}"), "name: puttys", "name: puttys-too", 1),
		code:    "OverrideEvaded",
		write:   kubectl("delete", "policyprofile/puttys"),
	},
	"profile-edited": bypass{
		objects: objectsWithOverride("Enamel"), code: "OverrideEvaded",
		write: kubectl("patch", "policyprofile/enamels", "--type=merge", "-p", `{"spec":{"blocks":{"overrides":["strict"]}}}`),
	},
	"profile-deleted": bypass{
		objects: objectsWithOverride("Veneer"), code: "OverrideEvaded",
		write: kubectl("delete", "policyprofile/veneers"),
	},
	"profile-owner": bypass{
		objects: objectsWithOverride("Shellac"), code: "OverrideEvaded",
		write: kubectl("patch", "policyprofile/shellacs", "--type=merge", "-p", ownedByMissingObject),
	},
	"definition-label-by-status": bypass{
		objects: objectsWithOverride("Umber"), code: "OverrideEvaded",
		write: kubectl("patch", "crd/umbers.policies.example.com", "--subresource=status", "--type=merge", "-p", `{"metadata":{"labels":{"gateway.networking.k8s.io/policy":null}}}`),
	},
	"definition-not-established": bypass{
		objects: objectsWithOverride("Sienna"), code: "OverrideEvaded",
		write: kubectl("patch", "crd/siennas.policies.example.com", "--subresource=status", "--type=merge", "-p", `{"status":{"conditions":[]}}`),
	},
	"definition-second": bypass{
		objects: objectsWithOverride("Garnet"), code: "NotRead", contains: []string{"Garnet.policies.example.com is already defined by garnets.policies.example.com"},
		write:   apply(secondDefinition("Garnet", "almandines")),
		instead: new(remove("INFRA", "garnet/gw-coat")),
	},
	"definition-second-kind": bypass{
		objects: objectsWithOverride("Garnet"), code: "NotRead", contains: []string{"Garnet.policies.example.com is already defined by garnets.policies.example.com"},
		write:   kubectl("patch", "crd/agates.policies.example.com", "--type=merge", "-p", `{"spec":{"names":{"kind":"Garnet","listKind":"GarnetList"}}}`),
		instead: new(remove("INFRA", "garnet/gw-coat")),
	},
	"definition-second-served": bypass{
		objects: objectsWithOverride("Opal"), code: "NotRead", contains: []string{"Opal.policies.example.com is already defined by opals.policies.example.com"},
		write:   kubectl("patch", "crd/agates.policies.example.com", "--subresource=status", "--type=merge", "-p", servedAsOpal),
		instead: new(remove("INFRA", "opal/gw-coat")),
	},
	"definition-second-rights": sequence(rightsOnSecondDefinition),
	"policy-scaled": bypass{
		objects: namespaces + gateway("edge", onHTTP) + route(onEdge, byPath) +
			object("Ochre", "namespace: INFRA, name: gw-coat", "{targetRef: {"+gatewayRef("edge")+"}, overrides: {limit: 5}}"),
		code: "NotRead", contains: []string{"scale of ochres/gw-coat", "update the policy instead"},
		write:   kubectl("-n", "INFRA", "patch", "ochres.v1beta1.policies.example.com/gw-coat", "--subresource=scale", "--type=merge", "-p", `{"spec":{"replicas":1000}}`),
		instead: new(patch("INFRA", "ochre/gw-coat", `{"spec":{"overrides":{"limit":1000}}}`)),
	},
	"policy-status-by-other-version": bypass{
		objects: objectsWithOverride("Coral"), code: "OverrideRemoved",
		write: kubectl("-n", "INFRA", "patch", "corals.v1alpha9.policies.example.com/gw-coat", "--subresource=status", "--type=merge", "-p", `{"status":{"a":"b"}}`),
	},
	"policy-status-by-only-version": bypass{
		objects: objectsWithOverride("Ebony"), code: "OverrideRemoved",
		write: kubectl("-n", "INFRA", "patch", "ebonys.v1alpha9.policies.example.com/gw-coat", "--subresource=status", "--type=merge", "-p", `{"status":{"a":"b"}}`),
	},
	"policy-scaled-by-other-version": bypass{
		objects: strings.Replace(objectsWithOverride("Coral"), "overrides: {colors", "replicas: 1, overrides: {colors", 1), code: "NotRead", contains: []string{"scale of corals/gw-coat", "update the policy instead"},
		write:   kubectl("-n", "INFRA", "patch", "corals.v1alpha9.policies.example.com/gw-coat", "--subresource=scale", "--type=merge", "-p", `{"spec":{"replicas":1000}}`),
		instead: new(patch("INFRA", "coral/gw-coat", `{"spec":{"overrides":null}}`)),
	},
	"policy-labelled-by-other-version": bypass{
		objects: objectsWithOverride("Coral"), code: "OverrideRemoved",
		write: kubectl("-n", "INFRA", "label", "corals.v1alpha9.policies.example.com/gw-coat", "a=b"),
	},
	"policy-status": permitted{
		objects: objectsWithOverride("Coral"), probe: new(remove("INFRA", "coral/gw-coat")),
		write: kubectl("-n", "INFRA", "patch", "corals.v1.policies.example.com/gw-coat", "--subresource=status", "--type=merge", "-p", `{"status":{"a":"b"}}`),
	},
	"profile-actions": bypass{
		objects: objectsWithOverride("Gloss"), code: "OverrideRemoved", contains: []string{"the action of OverrideRemoved would be Warn"}, warning: "less protected",
		write: kubectl("patch", "policyprofile/glosss", "--type=merge", "-p", `{"spec":{"actions":{"OverrideRemoved":"Warn","OverrideEvaded":"Warn"}}}`),
	},
	"profile-gates": bypass{
		objects: objectsWithOverride("Satin"), code: "OverrideRemoved", contains: []string{"gate when would be removed"}, warning: "less protected",
		write: kubectl("patch", "policyprofile/satins", "--type=merge", "-p", `{"spec":{"gates":null,"alternatives":null}}`),
	},
	"profile-higher": bypass{
		objects: objectsWithOverride("Matt"), code: "OverrideRemoved", contains: []string{"policies would be read differently (targets)"}, warning: "less protected",
		write: kubectl("patch", "policyprofile/matts", "--type=merge", "-p", `{"spec":{"targets":{"classFrom":["*"]}}}`),
	},
	"profile-route-overrides": bypass{
		objects: routeWithOverride("Nickel"), code: "OverrideRemoved", contains: []string{"it would not bind writes of routes in other namespaces"}, warning: "less protected",
		write: kubectl("patch", "policyprofile/nickels", "--type=merge", "-p", `{"spec":{"routeOverridesBind":"SameNamespace"}}`),
	},
	"profile-of-label": bypass{
		objects: objectsWithOverride("Size"), code: "OverrideRemoved", contains: []string{"gate when would be removed"}, warning: "less protected",
		write: kubectl("delete", "policyprofile/sizes"),
	},
	"profile-copied": bypass{
		objects: baseObjects, code: "OverrideRemoved", contains: []string{"the action of OverrideEvaded would be Warn"}, warning: "less protected", dry: true,
		write: apply(warningProfile("AuthPolicy")),
	},
	"profile-stricter": permitted{
		objects: objectsWithOverride("Chalk"), probe: new(remove("INFRA", "chalk/gw-coat")),
		write: kubectl("patch", "policyprofile/chalks", "--type=merge", "-p", `{"metadata":{"labels":{"a":"b"}},"spec":{"gates":["when"],"actions":null,"blastRadius":9}}`),
	},
	"profile-without-overrides": permitted{
		objects: baseObjects + object("Slate", "namespace: INFRA, name: gw-coat", "{targetRef: {"+gatewayRef("edge")+"}, defaults: {colors: {wall: red}}}"),
		write:   kubectl("patch", "policyprofile/slates", "--type=merge", "-p", `{"spec":{"actions":{"OverrideRemoved":"Warn"}}}`),
	},
	"definition-unconverted": sequence(failedConversion),
	"profiles-definition": bypass{
		objects: painted + paintPolicy("gw-paint", "targetRef: {"+gatewayRef("edge")+"}"), code: "OverrideEvaded", dry: true,
		write: kubectl("delete", "crd/policyprofiles.overrule.dev"),
	},
}

// servedAsOpal is a status that makes the API server serve a second definition of
// the same kind.
const servedAsOpal = `{"status":{"acceptedNames":{"kind":"Opal","listKind":"OpalList","plural":"agates"},"storedVersions":["v1"],"conditions":[` +
	`{"type":"Established","status":"True","reason":"x","message":"y","lastTransitionTime":"2026-01-01T00:00:00Z"},` +
	`{"type":"NamesAccepted","status":"True","reason":"x","message":"y","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`

// rightsOnSecondDefinition has users with the right to override on one of the two
// resources of a kind: the right on the served resource counts.
func rightsOnSecondDefinition(t *testing.T, g testNamespaces) {
	usual := rbacv1.PolicyRule{APIGroups: []string{"policies.example.com"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch", "delete"}}
	right := func(resource string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{"policies.example.com"}, Resources: []string{resource}, Verbs: []string{"override"}}
	}
	const first, other = "bypass-opals", "bypass-agates"
	g.c.MustAddUser(t, first, nil, usual, right("opals"))
	g.c.MustAddUser(t, other, nil, usual, right("agates"))
	succeed(t, g.apply(objectsWithOverride("Opal")))
	drop := remove("INFRA", "opal/gw-coat")
	g.awaitDenial(t, drop)
	for range 10 { // repeated, since the order of the two resources is random
		requireDenial(t, g.runAs(other, drop), "OverrideRemoved")
		succeed(t, g.runAs(first, drop.dryRun()))
	}
	succeed(t, g.runAs(first, drop))
}

// failedConversion breaks the conversion of a kind, so that its policies cannot
// be listed: they stay effective as last read until they can be listed again.
func failedConversion(t *testing.T, g testNamespaces) {
	const name = "crd/rusts.policies.example.com"
	stored := func(v1, v1beta1, conversion string) command {
		return kubectl("patch", name, "--type=json", "-p", `[{"op":"replace","path":"/spec/versions/0/storage","value":`+v1+
			`},{"op":"replace","path":"/spec/versions/1/storage","value":`+v1beta1+`},{"op":"replace","path":"/spec/conversion","value":`+conversion+`}]`)
	}
	succeed(t, g.apply(objectsWithOverride("Rust")+gateway("inner", onHTTP)))
	g.awaitDenial(t, remove("INFRA", "rust/gw-coat"))
	succeed(t, g.runAs(privileged, stored("false", "true",
		`{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":"https://127.0.0.1:1/convert"}}}`)))
	repaired := func() { succeed(t, g.runAs(privileged, stored("true", "false", `{"strategy":"None"}`))) }
	t.Cleanup(repaired) // otherwise the definition cannot be deleted
	read := func(version string) func() bool {
		rule := regexp.MustCompile(`\["` + version + `"\]\[[^]]*"rusts"`)
		return func() bool {
			return rule.MatchString(g.c.Kubectl("get", "validatingwebhookconfiguration/overrule", "-o",
				`jsonpath={range .webhooks[0].rules[*]}{.apiVersions}{.resources}{"\n"}{end}`).Stdout)
		}
	}
	soon(t, read("v1beta1"), "the kind is not read again")
	requireDenial(t, g.runAs(unprivileged, apply(route(onInner, byPath))), "OverrideEvaded")

	repaired()
	soon(t, read("v1"), "the kind is not read again")
	g.awaitDenial(t, remove("INFRA", "rust/gw-coat"))
	requireDenial(t, g.runAs(unprivileged, apply(route(onInner, byPath))), "OverrideEvaded")
}
