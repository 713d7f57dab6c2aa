package heavy

import (
	"fmt"
	"maps"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
)

const (
	gatewayAPI = "gateway.networking.k8s.io"
	kuadrant   = "kuadrant.io"
	example    = "policies.example.com"
)

// created makes every policy of a cluster older than the write.
const created = "2026-01-01T00:00:00Z"

func newObject(apiVersion, kind, namespace, name string, spec object) object {
	meta := object{"name": name, "creationTimestamp": created, "uid": namespace + "-" + name, "resourceVersion": "7"}
	if namespace != "" {
		meta["namespace"] = namespace
	}
	return object{"apiVersion": apiVersion, "kind": kind, "metadata": meta, "spec": spec}
}

func class(note string) object {
	o := newObject(gatewayAPI+"/v1", "GatewayClass", "", "demo", object{"controllerName": "example.com/gateway-controller"})
	o["metadata"].(object)["annotations"] = object{"note": note}
	return o
}

// namespaceApp is the namespace of all routes.
func namespaceApp(team string) object {
	o := newObject("v1", "Namespace", "", "app", object{})
	o["metadata"].(object)["labels"] = object{"team": team, "kubernetes.io/metadata.name": "app"}
	return o
}

func gatewayName(i int) string { return fmt.Sprintf("edge-%02d", i) }

// gateway allows routes of namespaces with the label team: ours on each of its
// listeners.
func gateway(i, listeners int) object {
	ours := object{"namespaces": object{"from": "Selector", "selector": object{"matchLabels": object{"team": "ours"}}}}
	list := make([]any, listeners)
	for l := range list {
		list[l] = object{"name": fmt.Sprintf("http-%02d", l), "protocol": "HTTP", "port": 8000 + l, "allowedRoutes": ours}
	}
	return newObject(gatewayAPI+"/v1", "Gateway", "infra", gatewayName(i), object{"gatewayClassName": "demo", "listeners": list})
}

func routeName(i int) string { return fmt.Sprintf("r%05d", i) }

// route is attached to the first gateways.
func route(i, gateways, rules, matches int) object {
	parents := make([]any, gateways)
	for g := range parents {
		parents[g] = object{"group": gatewayAPI, "kind": "Gateway", "namespace": "infra", "name": gatewayName(g)}
	}
	list := make([]any, rules)
	for r := range list {
		list[r] = routeRule(i, r, matches)
	}
	return newObject(gatewayAPI+"/v1", "HTTPRoute", "app", routeName(i), object{"parentRefs": parents, "rules": list})
}

func routeRule(route, at, matches int) object {
	all := make([]any, matches)
	for m := range all {
		all[m] = object{"path": object{"type": "PathPrefix", "value": fmt.Sprintf("/%s/%d/%d", routeName(route), at, m)}}
	}
	return object{"matches": all}
}

func policy(group, kind, namespace, name, targetKind, target string, spec object) object {
	spec = maps.Clone(spec)
	spec["targetRef"] = object{"group": gatewayAPI, "kind": targetKind, "name": target}
	return newObject(group+"/v1", kind, namespace, name, spec)
}

func limitsOn(gw int, name string, spec object) object {
	return policy(kuadrant, "RateLimitPolicy", "infra", name, "Gateway", gatewayName(gw), spec)
}

func routeLimits(i int, spec object) object {
	return policy(kuadrant, "RateLimitPolicy", "app", routeName(i), "HTTPRoute", routeName(i), spec)
}

// rates returns a list of limits, as RateLimitPolicies have it.
func rates(limits ...int) object {
	list := make([]any, len(limits))
	for i, n := range limits {
		list[i] = object{"limit": n, "window": "10s"}
	}
	return object{"rates": list}
}

// many returns n named values.
func many(n int, prefix string, value any) object {
	out := make(object, n)
	for i := range n {
		out[fmt.Sprintf("%s%04d", prefix, i)] = value
	}
	return out
}

// limits returns a block of RateLimitPolicy with n limits.
func limits(n int, prefix string, limit int) object {
	return object{"limits": many(n, prefix, rates(limit))}
}

func block(spec object, strategy, when string) object {
	spec = maps.Clone(spec)
	spec["strategy"] = strategy
	if when != "" {
		spec["when"] = when
	}
	return spec
}

// listKind is a kind with a list that is merged by name, and whose schema allows
// at most 1,500 items.
func listKind() (*policykind.Kind, error) {
	k, err := policykind.Compile(api.PolicyProfileSpec{
		Group: example, Kind: "ListPolicy", Class: api.Inherited,
		Targets:  api.ProfileTargets{Fields: []string{"targetRef", "targetRefs"}},
		Blocks:   api.ProfileBlocks{Defaults: []string{"defaults"}, Overrides: []string{"overrides"}},
		Strategy: api.ProfileStrategy{Allowed: []api.StrategyName{"patch"}, Field: "strategy"},
		Lists:    []api.KeyedList{{Path: "items", Key: "name"}},
	}, policykind.Label)
	if err != nil {
		return nil, err
	}
	var schema apiextensionsv1.JSONSchemaProps
	if err := yaml.Unmarshal([]byte(listSchema), &schema); err != nil {
		return nil, err
	}
	return k.WithSchema(policykind.PackSchema(&schema)), nil
}

const listSchema = `
type: object
properties:
  spec:
    type: object
    x-kubernetes-preserve-unknown-fields: true
    properties:
      items:
        type: array
        maxItems: 1500
        x-kubernetes-list-type: map
        x-kubernetes-list-map-keys: [name]
        items:
          type: object
          required: [name]
          properties: {name: {type: string}, value: {type: integer}}
`

func items(n int, prefix string) object {
	list := make([]any, n)
	for i := range list {
		list[i] = object{"name": fmt.Sprintf("%s%04d", prefix, i), "value": i}
	}
	return object{"items": list}
}
