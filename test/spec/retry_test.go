package spec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
)

// text is one of the two older texts.
type text struct {
	folder string
	// rule is the rule of a route with this retryOn, in YAML; empty leaves the
	// field out.
	rule func(retryOn string) string
	// member is the part of the rule that has the field; address is the field's
	// path.
	member, field string
	// value finds the field in a route's rule.
	value func(rule obj) any
}

var texts = map[string]text{
	"GEP-713 of 2023": {
		folder: "retry-2023",
		rule:   func(retryOn string) string { return "{" + retryOn + "}" },
		field:  "spec.rules[0].retryOn",
		value:  func(rule obj) any { return rule["retryOn"] },
	},
	"Gateway API's Policy Attachment": {
		folder: "retry-later",
		rule: func(retryOn string) string {
			return "{filters: [{type: URLRewrite}, {type: RetryFilter, retryFilter: {" + retryOn + "}}]}"
		},
		member: "filters[1]",
		field:  "spec.rules[0].filters[1].retryFilter.retryOn",
		value: func(rule obj) any {
			return rule["filters"].([]any)[1].(obj)["retryFilter"].(obj)["retryOn"]
		},
	},
}

// path returns the path of a cell's route.
func (x text) path() string { return strings.TrimSuffix("gateway > route > "+x.member, " > ") }

// variant is a variant of a cell: which of the two policies is created first, and
// their names.
type variant struct {
	name string
	// first is the policy that wins a tie of two policies on the same target.
	first             winner
	row, column       string // names
	rowAge, columnAge int    // in minutes: the older one is smaller
	merged            bool   // one policy has both blocks
}

var alone = []variant{{name: "by itself", row: "a", column: "z"}}

var pairs = []variant{
	{name: "the column's is created first", first: column, column: "z", row: "a", columnAge: 1, rowAge: 2},
	{name: "the row's is created first", first: row, column: "a", row: "z", columnAge: 2, rowAge: 1},
	{name: "created at once, the column's is first alphabetically", first: column, column: "a", row: "z"},
	{name: "created at once, the row's is first alphabetically", first: row, column: "z", row: "a"},
}

// variants returns the variants of a cell.
func (c *cell) variants() []variant {
	if c.row == nil || c.column == nil {
		return alone
	}
	if c.row.level == c.column.level && c.row.block != c.column.block {
		return append([]variant{{name: "one policy has both", row: "a", column: "a", merged: true}}, pairs...)
	}
	return pairs
}

// Values that the parties set.
const (
	ownValue    = "500"
	rowValue    = "502"
	columnValue = "503"
)

// Every cell of the tables under "Interactions between defaults, overrides,
// and field values".
func TestRetryOnPolicy(t *testing.T) {
	for name, x := range texts {
		t.Run(name, func(t *testing.T) {
			cells, ran := readTables(t, x.folder), 0
			require.Len(t, cells, 6*16, "six tables of four rows and four columns")
			for _, c := range cells {
				t.Run(c.String(), func(t *testing.T) { ran += x.run(t, c) })
			}
			t.Logf("%d cells, %d variants", len(cells), ran)
		})
	}
}

// String names a cell as its table, row and column do.
func (c *cell) String() string {
	name := func(g *party) string {
		if g == nil {
			return "none"
		}
		return g.String()
	}
	return fmt.Sprintf("%s: %s and %s", c.table, name(c.row), name(c.column))
}

// run tests all variants of a cell, and returns their number.
func (x text) run(t *testing.T, c cell) (ran int) {
	t.Helper()
	spellings := map[string]string{"the field is left out": "", "the field is an empty list": "retryOn: []"}
	if c.own {
		spellings = map[string]string{"the field has a value": fmt.Sprintf("retryOn: [%q]", ownValue)}
	}
	for spelling, retryOn := range spellings {
		for _, v := range c.variants() {
			ran++
			t.Run(spelling+", "+v.name, func(t *testing.T) {
				objects := fmt.Sprintf(retryObjects, x.rule(retryOn)) + c.policies(v)
				c.check(t, x, v, read(t, objects, x.folder+"/profile.yaml"))
			})
		}
	}
	return ran
}

// retryObjects are a gateway, and a route on it in another namespace.
const retryObjects = `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: gateway, namespace: appns}
spec:
  gatewayClassName: example
  listeners: [{name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: route, namespace: elsewhere}
spec:
  parentRefs: [{name: gateway, namespace: appns}]
  rules: [%s]
`

// policies returns the manifests of a cell's policies. Namespaces are targeted in
// both spellings of the texts.
func (c *cell) policies(v variant) string {
	if v.merged {
		return c.column.manifest(v.column, v.columnAge, "namespace", c.column.content(columnValue)+c.row.content(rowValue))
	}
	out := ""
	if c.column != nil {
		out += c.column.manifest(v.column, v.columnAge, "namespace", c.column.content(columnValue))
	}
	if c.row != nil {
		out += c.row.manifest(v.row, v.rowAge, "Namespace", c.row.content(rowValue))
	}
	return out
}

func (g *party) content(value string) string {
	return fmt.Sprintf("  %ss: {retryOn: [%q]}\n", g.block, value)
}

func (g *party) manifest(name string, age int, namespace, content string) string {
	in, target := "appns", "{group: gateway.networking.k8s.io, kind: Gateway, name: gateway}"
	switch g.level {
	case "Namespace":
		target = `{group: "", kind: ` + namespace + ", name: appns}"
	case "HTTPRoute":
		in, target = "elsewhere", "{group: gateway.networking.k8s.io, kind: HTTPRoute, name: route}"
	}
	return fmt.Sprintf(`---
apiVersion: networking.example.io/v1alpha1
kind: RetryOnPolicy
metadata: {name: %s, namespace: %s, creationTimestamp: "2021-07-15T01:%02d:00Z"}
spec:
  targetRef: %s
%s`, name, in, age, target, content)
}

// check compares a world with the expected values of a cell.
func (c *cell) check(t *testing.T, x text, v variant, w *world) {
	t.Helper()
	won := c.winner
	if won == older {
		won = v.first
	}
	require.Equal(t, []string{x.path()}, w.paths())
	item := w.at(t, x.path())
	field := api.EffectiveField{Field: x.field, Rule: "retryOn"}
	from := c.refs(v)
	if won != noOne {
		ref := from[won]
		field.Value, field.From, field.Block = []any{map[winner]string{route: ownValue, row: rowValue, column: columnValue}[won]}, &ref, c.block(won)
		assert.Equal(t, obj{"retryOn": field.Value}, item.Spec)
		assert.Equal(t, []api.RuleOrigin{{Rule: "retryOn", From: ref, Block: field.Block}}, item.Rules)
	} else {
		assert.Equal(t, obj{}, item.Spec)
		assert.Empty(t, item.Rules)
	}
	require.NotNil(t, item.Route)
	assert.Equal(t, []api.EffectiveField{field}, item.Route.Fields)
	shown := x.value(item.Route.Spec["rules"].([]any)[0].(obj))
	if won == noOne {
		assert.Empty(t, shown)
	} else {
		assert.Equal(t, field.Value, shown)
	}
	c.checkStates(t, v, won, item)
}

// refs returns the objects of the parties.
func (c *cell) refs(v variant) map[winner]api.Ref {
	policy := func(g *party, name string) api.Ref {
		ref := api.Ref{Group: "networking.example.io", Kind: "RetryOnPolicy", Namespace: "appns", Name: name}
		if g != nil && g.level == "HTTPRoute" {
			ref.Namespace = "elsewhere"
		}
		return ref
	}
	return map[winner]api.Ref{
		route: {Group: api.GatewayGroup, Kind: "HTTPRoute", Namespace: "elsewhere", Name: "route"},
		row:   policy(c.row, v.row), column: policy(c.column, v.column),
	}
}

// block returns the block that contains a party's value.
func (c *cell) block(of winner) string {
	switch of {
	case row:
		return c.row.block + "s"
	case column:
		return c.column.block + "s"
	default:
		return "object"
	}
}

// checkStates asserts that the policy that sets the value is enforced, and that
// every other one is overridden by it.
func (c *cell) checkStates(t *testing.T, v variant, won winner, item api.EffectivePolicy) {
	t.Helper()
	from := c.refs(v)
	want := make(map[string]api.PolicyOnPath)
	for side, g := range map[winner]*party{row: c.row, column: c.column} {
		switch {
		case g == nil:
		case side == won || v.merged && won != route:
			want[from[side].Key()] = api.PolicyOnPath{Policy: from[side], State: api.Enforced}
		default:
			to := c.beats(side, won)
			lost := api.LostRule{Rule: "retryOn", Block: g.block + "s", To: from[to], ToBlock: c.block(to)}
			if last := from[won]; won != to {
				lost.InForce = &last
			}
			want[from[side].Key()] = api.PolicyOnPath{Policy: from[side], State: api.Overridden, Lost: []api.LostRule{lost}}
		}
	}
	got := make(map[string]api.PolicyOnPath)
	for _, p := range item.Policies {
		got[p.Policy.Key()] = p
	}
	assert.Equal(t, want, got)
}

// beats returns which party overrode a party that does not set the value, at the
// time when the rule was lost (SEMANTICS section 6): a default meets the route's
// own value first, unless an override below it has already replaced that.
func (c *cell) beats(loser, won winner) winner {
	depth := map[string]int{"Namespace": 0, "Gateway": 1, "HTTPRoute": 2}
	mine, other := c.row, c.column
	if loser == column {
		mine, other = other, mine
	}
	if c.own && mine.block == "default" && (other == nil || other.block == "default" || depth[other.level] <= depth[mine.level]) {
		return route
	}
	return won
}

// The policies of the texts' own YAML, and which objects they affect.
func TestRetryOnPolicyReach(t *testing.T) {
	const objects = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: loves, namespace: appns}
spec: {parentRefs: [{name: we-love-retries}], rules: [%[1]s]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: must, namespace: elsewhere}
spec: {parentRefs: [{name: you-must-retry, namespace: appns}], rules: [%[1]s]}
---
apiVersion: networking.example.io/v1alpha1
kind: RetryOnPolicy
metadata: {name: retryon5xx, namespace: appns}
spec:
  defaults: {retryOn: ["501", "502", "503"]}
  targetRef: {kind: %[2]s, group: %[3]s, name: %[4]s}
`
	everyList := []any{"501", "502", "503"}
	for name, x := range texts {
		member := strings.TrimPrefix(x.path(), "gateway > route")
		loves, must := "we-love-retries > loves"+member, "you-must-retry > must"+member
		t.Run(name+": a policy on a namespace has the same effect as on every gateway in it", func(t *testing.T) {
			w := read(t, fmt.Sprintf(objects, x.rule(""), "Namespace", `""`, "appns"), "retry-reach", x.folder+"/profile.yaml")
			assert.Equal(t, obj{"retryOn": everyList}, w.at(t, loves).Spec)
			assert.Equal(t, obj{"retryOn": everyList}, w.at(t, must).Spec, "routes need not be in the namespace")
		})
		t.Run(name+": a policy on a gateway affects its routes alone", func(t *testing.T) {
			w := read(t, fmt.Sprintf(objects, x.rule(""), "Gateway", api.GatewayGroup, "we-love-retries"), "retry-reach", x.folder+"/profile.yaml")
			assert.Equal(t, obj{"retryOn": everyList}, w.at(t, loves).Spec)
			assert.Equal(t, obj{}, w.at(t, must).Spec)
		})
		t.Run(name+": a route without the filter", func(t *testing.T) {
			w := read(t, fmt.Sprintf(objects, x.rule(""), "Namespace", `""`, "appns"), "retry-reach", x.folder+"/profile.yaml")
			if x.member == "" { // the text of 2023 has no filters: each route has the field
				assert.Equal(t, api.Enforced, w.outcomes["on-plain"].State)
				return
			}
			assert.ElementsMatch(t, []string{loves, must}, w.paths(), "only routes that use the filter are affected")
			assert.Equal(t, api.NoPath, w.outcomes["on-plain"].State)
			assert.Equal(t, 2, w.outcomes["retryon5xx"].Paths.Total)
		})
	}
}
