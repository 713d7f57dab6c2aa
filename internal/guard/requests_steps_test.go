package guard

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// crowdedRows are writes beside the routes of another tenant, each with as many matches as
// Gateway API allows.
var crowdedRows = map[string]struct {
	routes        int
	regex, plain  bool
	dear          bool   // with regular expressions that have very many states
	before, after string // documents
	changed       int    // matches that the write changes
	deleted       bool
}{
	"a listener of another port is added":                    {routes: 2, regex: true, before: "gateway", after: "gateway-port"},
	"a listener of another hostname is added":                {routes: 16, before: "gateway", after: "gateway-hostname"},
	"a path of a neighbor is edited":                         {routes: 2, regex: true, before: "shop", after: "shop-path", changed: 2},
	"a path of a neighbor is edited, and an annotation":      {routes: 2, regex: true, before: "shop", after: "shop-annotated", changed: 2},
	"a path of a neighbor is edited beside very many routes": {routes: 60, before: "shop", after: "shop-path", changed: 2},
	"a path of a neighbor is edited beside dear expressions": {routes: 15, regex: true, dear: true, before: "shop", after: "shop-path", changed: 2},
	"a route on a hostname of its own is created":            {routes: 6, regex: true, after: "other"},
	"the namespace of the routes is labelled":                {routes: 7, regex: true, before: "namespace-app", after: "namespace-app-labelled"},
	"the namespace of the routes is deleted":                 {routes: 7, regex: true, before: "namespace-app", deleted: true, changed: 7 * 128},
	"another namespace is labelled":                          {routes: 128, before: "namespace-shop", after: "namespace-shop-labelled"},
	"the hostname of a neighbor is edited":                   {routes: 100, plain: true, before: "shop", after: "shop-hostname", changed: 2},
}

const crowdedGateway = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: infra, name: edge}
spec:
  gatewayClassName: demo
  listeners:
  - {name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}
`

func crowdedRoute(namespace, name, hostname, annotations, matches string) string {
	return fmt.Sprintf(`
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: %s, name: %s, annotations: {%s}}
spec:
  parentRefs: [{kind: Gateway, namespace: infra, name: edge}]
  hostnames: [%s]
  rules: [%s]
`, namespace, name, annotations, hostname, matches)
}

func crowdedNamespace(name, labels string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s, labels: {kubernetes.io/metadata.name: %s, %s}}\n", name, name, labels)
}

var crowdedDocs = map[string]string{
	"gateway":                 crowdedGateway,
	"gateway-port":            crowdedGateway + "  - {name: more, port: 9000, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}\n",
	"gateway-hostname":        crowdedGateway + "  - {name: more, port: 80, hostname: unrelated.example.org, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}\n",
	"shop":                    crowdedRoute("shop", "shop", "shared.example.com", "", `{matches: [{path: {value: /shop}}]}`),
	"shop-path":               crowdedRoute("shop", "shop", "shared.example.com", "", `{matches: [{path: {value: /buy}}]}`),
	"shop-annotated":          crowdedRoute("shop", "shop", "shared.example.com", "note: x", `{matches: [{path: {value: /buy}}]}`),
	"shop-hostname":           crowdedRoute("shop", "shop", "mine.example.com", "", `{matches: [{path: {value: /shop}}]}`),
	"other":                   crowdedRoute("shop", "other", "other.example.com", "", `{matches: [{path: {value: /}}]}`),
	"namespace-app":           crowdedNamespace("app", ""),
	"namespace-app-labelled":  crowdedNamespace("app", "team: theirs"),
	"namespace-shop":          crowdedNamespace("shop", ""),
	"namespace-shop-labelled": crowdedNamespace("shop", "team: theirs"),
}

func crowdedPolicy(namespace, kind, name string) string {
	return fmt.Sprintf(`
apiVersion: kuadrant.io/v1
kind: RateLimitPolicy
metadata: {namespace: %s, name: top}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: %s, name: %s}
  overrides: {strategy: merge, limits: {login: {rates: [{limit: 10, window: 10s}]}}}
`, namespace, kind, name)
}

// Routes of one tenant cost others nothing unless an override is at stake, and then no more
// than their number times that of the matches that are written.
func TestNeighborsCostNothing(t *testing.T) {
	for name, row := range crowdedRows {
		for policies, docs := range map[string][]string{
			"without policies": nil, "with an override of the gateway": {crowdedPolicy("infra", "Gateway", "edge")},
			"with defaults of the gateway":     {strings.Replace(crowdedPolicy("infra", "Gateway", "edge"), "overrides", "defaults", 1)},
			"with defaults of the neighbor":    {strings.Replace(crowdedPolicy("shop", "HTTPRoute", "shop"), "overrides", "defaults", 1)},
			"with an override of the neighbor": {crowdedPolicy("shop", "HTTPRoute", "shop")},
		} {
			t.Run(name+", "+policies, func(t *testing.T) {
				c := worlds.Empty(t)
				decode := func(doc string) snapshot.Object {
					var o worlds.Object
					require.NoError(t, yaml.Unmarshal([]byte(doc), &o))
					return c.Decode(t, o)
				}
				var changes []snapshot.Change
				for _, at := range []string{"gateway", "shop", "namespace-app", "namespace-shop"} {
					changes = append(changes, snapshot.Put(decode(crowdedDocs[at])))
				}
				for _, doc := range docs {
					changes = append(changes, snapshot.Put(decode(doc)))
				}
				for i := range row.routes {
					changes = append(changes, snapshot.Put(decode(crowdedRoute("app", fmt.Sprintf("r%d", i), "shared.example.com", "", fullRules(i, row.regex, row.plain, row.dear)))))
				}
				c.Store.Apply(changes...)
				v, _ := c.Store.View()
				write := Change{Operation: Create}
				if row.before != "" {
					write.Before, write.Operation = v.Get(decode(crowdedDocs[row.before]).Ref()), Update
				}
				if row.deleted {
					write.Operation = Delete
				} else {
					write.After = decode(crowdedDocs[row.after])
				}
				ev := (&Guard{Engine: effective.NewEngine()}).newEvaluation(v, effective.NewBudget(t.Context(), DefaultBudget))
				ev.change = write
				require.NoError(t, ev.run(t.Context()))
				for _, f := range ev.findings {
					assert.NotEqual(t, api.ReasonTooMuch, f.Code)
				}
				t.Logf("%d work", ev.work)
				if !strings.HasSuffix(policies, "of the neighbor") || row.changed == 0 {
					assert.Zero(t, ev.work)
				}
				assert.LessOrEqual(t, ev.work, workPerMatch*row.changed*(1+row.routes*128))
			})
		}
	}
}

// workPerMatch is the work for a changed match and one that competes with it: all regular
// expressions of these rows do, in three readings, by far the most of it for their texts.
const workPerMatch = 150

// fullRules returns 16 rules of 8 matches, or one rule of one match.
func fullRules(route int, regex, plain, dear bool) string {
	rules, matches := 16, 8
	if plain {
		rules, matches = 1, 1
	}
	var out []string
	for rule := range rules {
		var all []string
		for m := range matches {
			path := fmt.Sprintf("{value: /r%d/%d/%d}", route, rule, m)
			if regex {
				path = fmt.Sprintf(`{type: RegularExpression, value: "/.*/r%d/%d/%d"}`, route, rule, m)
			}
			if dear {
				ends := []string{`\\x01`, "r%d", "(r%d|.{9})"}[m%3]
				path = fmt.Sprintf(`{type: RegularExpression, value: "/.*a.{14}%s/%d/%d"}`, strings.ReplaceAll(ends, "%d", fmt.Sprint(route)), rule, m)
			}
			all = append(all, "{path: "+path+"}")
		}
		out = append(out, "{matches: ["+strings.Join(all, ", ")+"]}")
	}
	return strings.Join(out, ", ")
}

// An edit of a class that changes nothing of it that is read is evaluated on no path, however
// many others have on its gateways.
func TestClassEditsThatChangeNothing(t *testing.T) {
	class := func(more string) string {
		return "apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: demo" + more + "\n"
	}
	for name, row := range map[string]struct {
		after, also string
		paths       bool
	}{
		"an annotation": {after: class(", annotations: {a: b}}\nspec: {controllerName: example.com/c}")},
		"a description": {after: class("}\nspec: {controllerName: example.com/c, description: new}")},
		"a label":       {after: class(", labels: {a: b}}\nspec: {controllerName: example.com/c}")},
		"a label that a constraint may select": {after: class(", labels: {a: b}}\nspec: {controllerName: example.com/c}"), paths: true, also: `
apiVersion: overrule.dev/v1alpha1
kind: ClusterPolicyConstraint
metadata: {name: c}
spec: {policyKind: {group: kuadrant.io, kind: RateLimitPolicy}, rules: [{path: limits, required: true}]}`},
		"parameters that are no policy": {after: class("}\nspec: {controllerName: example.com/c, parametersRef: {group: a, kind: B, name: c}}")},
		"its controller":                {after: class("}\nspec: {controllerName: example.com/other}"), paths: true},
		"it is not there":               {paths: true},
	} {
		t.Run(name, func(t *testing.T) {
			c := worlds.Empty(t)
			decode := func(doc string) snapshot.Object {
				var o worlds.Object
				require.NoError(t, yaml.Unmarshal([]byte(doc), &o))
				return c.Decode(t, o)
			}
			c.Store.Apply(snapshot.Put(decode(class("}\nspec: {controllerName: example.com/c}"))), snapshot.Put(decode(crowdedDocs["gateway"])), snapshot.Put(decode(crowdedDocs["shop"])),
				snapshot.Put(decode(crowdedPolicy("infra", "Gateway", "edge"))))
			if row.also != "" {
				c.Store.Apply(snapshot.Put(decode(row.also)))
			}
			v, _ := c.Store.View()
			write := Change{Operation: Update, Before: v.Get(decode(class("}")).Ref())}
			if row.after != "" {
				write.After = decode(row.after)
			} else {
				write.Operation = Delete
			}
			ev := (&Guard{Engine: effective.NewEngine()}).newEvaluation(v, effective.NewBudget(t.Context(), DefaultBudget))
			ev.change = write
			require.NoError(t, ev.run(t.Context()))
			assert.Equal(t, row.paths, ev.hasPaths)
		})
	}
}

// An acknowledgement of one edit of how policies are read is none of another.
func TestAcknowledgementsOfKinds(t *testing.T) {
	profile := func(field string) Change {
		p := &policykind.Profile{}
		p.Spec.Kind, p.Spec.Blocks.Defaults = "Paint", []string{field}
		return Change{Operation: Update, After: p}
	}
	definition := func(version string) Change {
		d := &policykind.Definition{}
		d.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: version}}
		return Change{Operation: Update, After: d}
	}
	assert.NotEqual(t, profile("defaults").hash(), profile("base").hash())
	assert.NotEqual(t, definition("v1").hash(), definition("v2").hash())
}
