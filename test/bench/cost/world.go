package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/hierarchy"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/store"
)

// The objects are this gate's own: those of other benchmarks may change, and the
// baseline must not change with them.

var (
	gatewayKind = api.PolicyKind{Group: api.GatewayGroup, Kind: hierarchy.KindGateway}
	routeKind   = api.PolicyKind{Group: api.GatewayGroup, Kind: hierarchy.KindHTTPRoute}
	authKind    = api.PolicyKind{Group: "kuadrant.io", Kind: "AuthPolicy"}
	limitKind   = api.PolicyKind{Group: "kuadrant.io", Kind: "RateLimitPolicy"}
)

const uid = "2b3ac2f1-7e53-4a3e-9d3f-0d6d0a7b9c11"

// object returns JSON of an object as the API server sends it.
func object(kind api.PolicyKind, namespace, name, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"%s","metadata":{"namespace":"%s","name":"%s","uid":"%s",`+
		`"resourceVersion":"1","generation":1,"creationTimestamp":"2026-01-01T00:00:00Z","labels":{"team":"%s"}},"spec":%s}`,
		kind.Group, kind.Kind, namespace, name, uid, namespace, spec)
}

// gateway has two listeners.
func gateway(name string) string {
	const listener = `{"name":"%s","protocol":"%s","port":%d,"hostname":"*.%s","allowedRoutes":{"namespaces":{"from":"All"}}}`
	return object(gatewayKind, "infra", name, fmt.Sprintf(`{"gatewayClassName":"mesh","listeners":[%s,%s]}`,
		fmt.Sprintf(listener, "https", "HTTPS", 443, "example.com"), fmt.Sprintf(listener, "internal", "HTTP", 8080, "internal.example")))
}

func team(i int) string { return fmt.Sprintf("team-%02d", i%20) }

func routeName(i int) string { return fmt.Sprintf("route-%05d", i) }

// route is on the listener https of a gateway. A rule of it has about 550 bytes.
func route(i int, gateway, host string, rules int) string {
	const rule = `{"matches":[{"path":{"type":"PathPrefix","value":"/part-%d"},"method":"GET",` +
		`"headers":[{"type":"Exact","name":"x-version","value":"v1"}]}],` +
		`"filters":[{"type":"RequestHeaderModifier","requestHeaderModifier":{"set":[{"name":"x-forwarded-by","value":"the gateway of the platform team"}]}}],` +
		`"backendRefs":[{"group":"","kind":"Service","name":"service-%[2]d","port":8080,"weight":90},` +
		`{"group":"","kind":"Service","name":"service-%[2]d-canary","port":8080,"weight":10}],"timeouts":{"request":"10s"}}`
	all := make([]string, rules)
	for n := range all {
		all[n] = fmt.Sprintf(rule, n, i)
	}
	return object(routeKind, team(i), routeName(i), fmt.Sprintf(
		`{"parentRefs":[{"group":"gateway.networking.k8s.io","kind":"Gateway","namespace":"infra","name":"%s","sectionName":"https"}],`+
			`"hostnames":["%s"],"rules":[%s]}`, gateway, host, strings.Join(all, ",")))
}

const target = `"targetRef":{"group":"gateway.networking.k8s.io","kind":"%s","name":"%s"}`

// gatewayLimits is a RateLimitPolicy of a gateway with an override.
func gatewayLimits(gateway, when string, limit int) string {
	return object(limitKind, "infra", gateway, fmt.Sprintf(
		`{`+target+`,"overrides":{%s"strategy":"merge","limits":{"requests":{"rates":[{"limit":%d,"window":"10s"}]}}}}`,
		"Gateway", gateway, when, limit))
}

// gatewayAuth is an AuthPolicy of a gateway with an override.
func gatewayAuth(gateway string) string {
	return object(authKind, "infra", gateway, fmt.Sprintf(
		`{`+target+`,"overrides":{"strategy":"merge","rules":{"authentication":{"sso":{"jwt":{"issuerUrl":"https://sso.example.com"}}}}}}`,
		"Gateway", gateway))
}

// routeLimits is a RateLimitPolicy of a route.
func routeLimits(i, limit int) string {
	return object(limitKind, team(i), routeName(i), fmt.Sprintf(
		`{`+target+`,"limits":{"requests":{"rates":[{"limit":%d,"window":"10s"}]},"writes":{"rates":[{"limit":5,"window":"1m"}]}}}`,
		"HTTPRoute", routeName(i), limit))
}

// routeAuth is an AuthPolicy of a route, with a spec of about 700 bytes.
func routeAuth(i int) string {
	const key = `"%s":{"apiKey":{"selector":{"matchLabels":{"app":"%s","tier":"%[1]s"}}},"credentials":{"authorizationHeader":{"prefix":"APIKEY"}}}`
	name := routeName(i)
	return object(authKind, team(i), name, fmt.Sprintf(
		`{`+target+`,"rules":{"authentication":{%s,%s},"authorization":{"admins":{"patternMatching":{"patterns":[`+
			`{"predicate":"auth.identity.groups.exists(g, g == 'admins')"}]}}}}}`,
		"HTTPRoute", name, fmt.Sprintf(key, "customers", name), fmt.Sprintf(key, "partners", name)))
}

// constraints are one in CEL and one without, which every policy of the gate
// meets.
var constraints = []string{
	constraintOf("in-cel", `"validations":[{"expression":"!has(effective.limits) || effective.limits.all(n, l, l.rates.all(r, r.limit <= 1000))"}]`),
	constraintOf("plain", `"rules":[{"path":"limits.*.rates[*].limit","min":1,"max":1000}]`),
}

func constraintOf(name, demand string) string {
	return fmt.Sprintf(`{"apiVersion":"overrule.dev/v1alpha1","kind":"ClusterPolicyConstraint","metadata":{"name":"%s"},`+
		`"spec":{"policyKind":{"group":"kuadrant.io","kind":"RateLimitPolicy"},%s}}`, name, demand)
}

// world is a store with the policy kinds that Overrule brings.
type world struct {
	*store.Store
	kinds map[api.PolicyKind]*policykind.Kind
}

func newWorld() (*world, error) {
	kinds, err := policykind.BuiltinKinds()
	if err != nil {
		return nil, err
	}
	w := &world{store.New(), make(map[api.PolicyKind]*policykind.Kind)}
	for _, k := range kinds {
		w.kinds[k.Ref()] = k
		w.AddKind(k)
		w.KindListed(k.Ref())
	}
	return w, nil
}

// read decodes an object; a policy is packed, as one that is watched.
func (w *world) read(kind api.PolicyKind, text string) (store.Object, error) {
	o, err := store.Decode(kind, w.kinds[kind], []byte(text), 0)
	if p, ok := o.(*policykind.Policy); ok {
		return p.Pack(), nil
	}
	return o, err
}

// watchedRoute is a route as client-go decodes it.
func watchedRoute(text string) (*hierarchy.RouteObject, error) {
	var o hierarchy.RouteObject
	return &o, json.Unmarshal([]byte(text), &o)
}

// watchedPolicy is a policy as client-go decodes it.
func watchedPolicy(text string) (map[string]any, error) {
	var u unstructured.Unstructured
	err := u.UnmarshalJSON([]byte(text))
	return u.Object, err
}

// put stores objects of a kind, one by one as events do.
func (w *world) put(kind api.PolicyKind, texts ...string) error {
	for _, text := range texts {
		o, err := w.read(kind, text)
		if err != nil {
			return err
		}
		w.Apply(store.Put(o))
	}
	return nil
}

// policies tells which policies the routes of a crowd have.
type policies int

const (
	none policies = iota
	own           // a RateLimitPolicy
)

// crowd is a world with that many routes on the gateway edge, which has policies
// of two kinds, and a gateway aside with one route.
func crowd(routes int, have policies, when string) (*world, error) {
	w, err := newWorld()
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"edge", "aside"} {
		if err := w.put(gatewayKind, gateway(name)); err != nil {
			return nil, err
		}
		if err := w.put(authKind, gatewayAuth(name)); err != nil {
			return nil, err
		}
		if err := w.put(limitKind, gatewayLimits(name, when, 50)); err != nil {
			return nil, err
		}
	}
	for i := range routes {
		if err := w.put(routeKind, route(i, "edge", hostOf(i), 1)); err != nil {
			return nil, err
		}
		if have == own {
			if err := w.put(limitKind, routeLimits(i, 20+i%60)); err != nil {
				return nil, err
			}
		}
	}
	return w, nil
}

func hostOf(i int) string { return fmt.Sprintf("r%05d.example.com", i) }
