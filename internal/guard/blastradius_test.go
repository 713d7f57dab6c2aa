package guard_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// shopRoute is a route of one rule in namespace shop.
func shopRoute(gateways ...string) string {
	parents := make([]string, len(gateways))
	for i, g := range gateways {
		parents[i] = worlds.ToGateway(g)
	}
	return worlds.RouteTo("HTTPRoute", "shop", "r", "[{}]", parents...)
}

// limited is the finding about a blast radius on three paths in two namespaces.
const limited = "Deny BlastRadius: Paint infra/top, Paint, 3 paths, 2 namespaces, 2, overrule.dev/acknowledge-blast-radius, HASH-3"

var (
	hex             = regexp.MustCompile("[0-9a-f]{16}")
	acknowledgement = regexp.MustCompile("[0-9a-f]{16}-[0-9]+")
)

// acknowledged evaluates a change with an annotation, under a limit, and returns
// the findings with the hash as HASH, and the acknowledgement that they ask for.
func acknowledged(t *testing.T, v *snapshot.View, c guard.Change, limit int, hash string) (reported []string, printed string) {
	t.Helper()
	c.Acknowledged = hash
	ev, err := (&guard.Guard{Engine: effective.NewEngine(), BlastRadius: limit}).Evaluate(t.Context(), v, c, nil)
	require.NoError(t, err)
	for _, text := range findingsOf(t, ev, "BlastRadius") {
		if all := acknowledgement.FindAllString(text, -1); len(all) > 0 {
			printed = all[len(all)-1]
		}
		reported = append(reported, hex.ReplaceAllString(text, "HASH"))
	}
	return reported, printed
}

// A write that changes more paths than it may needs the hash of its change.
func TestBlastRadiusLimit(t *testing.T) {
	v := world(t, base(shopRoute("g")))
	c := change(v, read(t, v, gatewayPolicy("defaults: {a: 1}")))
	open := []string{"Warn BlastRadius: Paint infra/top, Paint, 3 paths, 2 namespaces"}
	got, hash := acknowledged(t, v, c, 2, "")
	assert.Equal(t, []string{limited}, got)
	require.Regexp(t, "^[0-9a-f]{16}-3$", hash)

	t.Run("denied with what is no hash", func(t *testing.T) {
		got, _ := acknowledged(t, v, c, 2, "yes")
		assert.Equal(t, []string{limited}, got)
	})
	t.Run("no limit", func(t *testing.T) {
		got, _ := acknowledged(t, v, c, 0, "")
		assert.Equal(t, open, got)
	})
	t.Run("no limit, and an annotation that is left over", func(t *testing.T) {
		got, _ := acknowledged(t, v, c, 0, hash)
		assert.Equal(t, open, got)
	})
}

// The profile has the last word on its kind's limit.
func TestBlastRadiusLimitOfProfile(t *testing.T) {
	tests := map[string]struct {
		profile string
		limit   int
		denied  bool
	}{
		"the guard's":                    {"", 2, true},
		"none":                           {"", 0, false},
		"the profile's":                  {"blastRadius: 2", 0, true},
		"the profile's, which is wider":  {"blastRadius: 3", 1, false},
		"the profile's, which is closer": {"blastRadius: 1", 100, true},
		"switched off by the profile":    {"blastRadius: 0", 1, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			v := world(t, base(worlds.ProfileDoc("Paint", "strategy: {allowed: [patch]}\nblocks: {defaults: [defaults]}\n"+test.profile), shopRoute("g")))
			got, _ := acknowledged(t, v, change(v, read(t, v, gatewayPolicy("defaults: {a: 1}"))), test.limit, "")
			require.Len(t, got, 1)
			assert.Equal(t, test.denied, strings.HasPrefix(got[0], "Deny"), got)
		})
	}
}

// A deletion is acknowledged on the object that is deleted.
func TestBlastRadiusOfDeletions(t *testing.T) {
	v := world(t, base(shopRoute("g"), gatewayPolicy("defaults: {strategy: patch, a: 1}"), dye, dyed("sec", "far", "{kind: Gateway, namespace: infra, name: g}")))
	c := guard.Change{Operation: guard.Delete, Before: v.Get(paintRef("infra", "top"))}
	got, hash := acknowledged(t, v, c, 2, "")
	assert.Equal(t, []string{
		"Deny BlastRadius: Paint infra/top, Paint, 3 paths, 2 namespaces, 3, a, 2, paint.example.com, overrule.dev/acknowledge-blast-radius=HASH-3",
	}, got)
	got, _ = acknowledged(t, v, c, 2, hash)
	assert.Len(t, got, 1)
	assert.True(t, strings.HasPrefix(got[0], "Warn"), got)

	t.Run("of a policy that was edited since", func(t *testing.T) {
		edited := world(t, base(shopRoute("g"), gatewayPolicy("defaults: {strategy: patch, a: 1, b: 2}")))
		got, _ := acknowledged(t, edited, guard.Change{Operation: guard.Delete, Before: edited.Get(paintRef("infra", "top"))}, 2, hash)
		require.Len(t, got, 1)
		assert.Contains(t, got[0], "Deny")
	})
	t.Run("with a new owner", func(t *testing.T) {
		c := guard.Change{Operation: guard.Update, Before: c.Before, After: c.Before, Owner: "ConfigMap infra/x"}
		got, owned := acknowledged(t, v, c, 2, "")
		assert.Equal(t, []string{"Deny BlastRadius: Paint infra/top, ConfigMap infra/x, Paint, 3 paths, 2 namespaces, 3, a, 2, overrule.dev/acknowledge-blast-radius, HASH-3"}, got)
		got, _ = acknowledged(t, v, c, 2, owned)
		assert.Empty(t, got)
		got, _ = acknowledged(t, v, c, 3, "")
		assert.Empty(t, got)
		c.Owner = "ConfigMap infra/y"
		got, _ = acknowledged(t, v, c, 2, owned)
		assert.Len(t, got, 1, "another owner")
	})
	t.Run("of a class", func(t *testing.T) {
		class := world(t, docs(dye, "kind: GatewayClass\nmetadata: {name: istio}", gatewayDoc("g", "istio", "http"), routeDoc("r", two, "g"),
			policyDoc("Dye", "infra", "top", "targetRefs: [{kind: GatewayClass, name: istio}]\na: 1")))
		got, _ := acknowledged(t, class, guard.Change{Operation: guard.Delete, Before: class.Get(read(t, class, "kind: GatewayClass\nmetadata: {name: istio}").Ref())}, 1, "")
		assert.Equal(t, []string{"Deny BlastRadius: GatewayClass istio, Dye, 2 paths, 1 namespace, 2, a, 1, gatewayclass.gateway.networking.k8s.io, overrule.dev/acknowledge-blast-radius=HASH-2"}, got)
	})
}

// An acknowledgement is for what is written and a number of paths: others can change neither.
func TestAcknowledgement(t *testing.T) {
	ranked := worlds.ProfileDoc("Ranked", "order: {annotation: example.com/weight}")
	weighted := func(weight string) string {
		return strings.Replace(policyDoc("Ranked", "infra", "top", toGateway+"a: 1"), "metadata: {", "metadata: {annotations: {example.com/weight: '"+weight+"'}, ", 1)
	}
	objects := []string{gatewayDoc("g", "istio", "http"), routeDoc("r", two, "g"), shopRoute("g"), ranked, dye, dyed("infra", "far", "{kind: Gateway, name: g}")}
	ask := func(t *testing.T, objects []string, write, acknowledgement string) string {
		t.Helper()
		v := world(t, docs(objects...))
		_, asked := acknowledged(t, v, change(v, read(t, v, write)), 1, acknowledgement)
		return asked
	}
	policy := gatewayPolicy("defaults: {strategy: patch, a: 1}")
	from := func(selector string) string {
		return "kind: Gateway\nmetadata: {namespace: infra, name: g}\nspec: {gatewayClassName: istio, listeners: [{name: http, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: " + selector + "}}}}]}"
	}
	tests := map[string]struct{ write, again, want string }{
		"the same":                       {policy, policy, "same"},
		"under a name that is generated": {policy, strings.Replace(policy, "name: top", "name: top-x7f", 1), "same"},
		"another value":                  {policy, gatewayPolicy("defaults: {strategy: patch, a: 2}"), "other"},
		"another rule":                   {policy, gatewayPolicy("defaults: {strategy: patch, c: 1}"), "other"},
		"another place in the order":     {weighted("1"), weighted("2"), "other"},
		"another block":                  {policy, gatewayPolicy("overrides: {strategy: patch, a: 1}"), "other"},
		"the same selector":              {from("{a: b}"), from("{a: b}"), "same"},
		"another selector":               {from("{a: b}"), from("{a: c}"), "other"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			asked := ask(t, objects, test.write, "")
			require.NotEmpty(t, asked)
			again := ask(t, objects, test.again, asked)
			assert.Equal(t, test.want == "same", again == "", "asked for %s, then for %s", asked, again)
		})
	}
	t.Run("routes that others create meanwhile", func(t *testing.T) {
		asked := ask(t, objects, policy, "")
		more := append(slices.Clone(objects), routeDoc("s", "[{}]", "g"), policyDoc("Paint", "app", "own", toRoute+"b: 7"))
		hash, paths, _ := strings.Cut(asked, "-")
		require.Equal(t, "3", paths)
		assert.Equal(t, hash+"-4", ask(t, more, policy, asked))
		assert.Empty(t, ask(t, more, policy, hash+"-4"))
		assert.Empty(t, ask(t, more, policy, hash+"-1000"))
	})
	t.Run("a deletion is another change than the edit that does the same", func(t *testing.T) {
		v := world(t, docs(append(slices.Clone(objects), policy)...))
		_, edited := acknowledged(t, v, change(v, read(t, v, gatewayPolicy("defaults: {strategy: patch}"))), 1, "")
		_, deleted := acknowledged(t, v, guard.Change{Operation: guard.Delete, Before: v.Get(paintRef("infra", "top"))}, 1, "")
		assert.NotEqual(t, edited, deleted)
	})
}
