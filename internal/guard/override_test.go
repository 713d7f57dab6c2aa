package guard_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// overrideCase is a write that may take an override out of force.
type overrideCase struct {
	before string // documents
	write  string // a document
	delete string // or one whose object is deleted
	owner  string // that the write adds
	of     string // the policy, if not Paint infra/top
	want   []string
}

func (w overrideCase) change(t testing.TB, v *snapshot.View) guard.Change {
	t.Helper()
	if w.delete != "" {
		return guard.Change{Operation: guard.Delete, Before: v.Get(read(t, v, w.delete).Ref())}
	}
	c := change(v, read(t, v, w.write))
	c.Owner = w.owner
	return c
}

// run evaluates the case as users who are not allowed to remove overrides, and as those
// who may.
func (w overrideCase) run(t *testing.T) {
	t.Helper()
	if w.of == "" {
		w.of = "Paint infra/top"
	}
	v := world(t, w.before)
	var denials, warnings []string
	for _, what := range w.want {
		denials, warnings = append(denials, "Deny "+what), append(warnings, "Warn "+what)
	}
	c := w.change(t, v)
	assert.Equal(t, denials, findingsOf(t, evaluateAs(t, bossAndDev(), "dev", v, c), "Override"))
	assert.Equal(t, warnings, findingsOf(t, evaluateAs(t, bossAndDev(), "boss", v, c), "Override"))
	w.checkUnlisted(t, v, c)
}

func runOverrideCases(t *testing.T, ways map[string]overrideCase) {
	t.Helper()
	for name, w := range ways {
		t.Run(name, w.run)
	}
}

const (
	hard    = "overrides: {strategy: patch, a: 1}"
	removed = "OverrideRemoved a Paint infra/top: 2 paths"
)

// evaded is the loss of the override a on the two rules of a route, and what it names
// as the cause.
func evaded(policy string, cause ...string) []string {
	return []string{"OverrideEvaded a " + policy + ": " + strings.Join(append([]string{"2 paths"}, cause...), ", ")}
}

// evadedOn is that on one path of app/r alone.
func evadedOn(policy, on string, cause ...string) []string {
	return []string{"OverrideEvaded a " + policy + ": " + strings.Join(append([]string{"HTTPRoute app/r", on}, cause...), ", ")}
}

// What a policy's own write does to its overrides.
func TestOverridesRemoved(t *testing.T) {
	runOverrideCases(t, map[string]overrideCase{
		"their policy is deleted":            {before: base(gatewayPolicy(hard)), delete: gatewayPolicy(hard), want: []string{removed}},
		"another value":                      {before: base(gatewayPolicy(hard)), write: gatewayPolicy("overrides: {strategy: patch, a: 2}"), want: []string{removed}},
		"taken out while another stays":      {before: base(gatewayPolicy(hard)), write: gatewayPolicy("overrides: {strategy: patch, b: 2}"), want: []string{removed}},
		"moved to the defaults":              {before: base(gatewayPolicy(hard)), write: gatewayPolicy("defaults: {strategy: patch, a: 1}"), want: []string{removed}},
		"moved out of the blocks":            {before: base(gatewayPolicy(hard)), write: gatewayPolicy("a: 1"), want: []string{removed}},
		"put under a condition":              {before: base(gatewayPolicy(hard)), write: gatewayPolicy("overrides: {strategy: patch, a: 1, when: 'spec.a > 0'}"), want: []string{removed}},
		"under a condition that is loosened": {before: base(gatewayPolicy(clip)), write: gatewayPolicy(strings.Replace(clip, "> 50", "> 90", 1)), want: []string{removed}},
		"no longer atomic":                   {before: base(gatewayPolicy("overrides: {a: 1}")), write: gatewayPolicy(hard), want: []string{removed}},
		"a policy that cannot be read any more": {
			before: base(gatewayPolicy(hard)), write: gatewayPolicy("overrides: 1"), want: []string{removed},
		},
		"one of two rules": {
			before: base(gatewayPolicy("overrides: {strategy: patch, a: 1, b: 1}")), write: gatewayPolicy("overrides: {strategy: patch, a: 2, b: 1}"), want: []string{removed},
		},
		"both rules": {
			before: base(gatewayPolicy("overrides: {strategy: patch, a: 1, b: 1}")), write: gatewayPolicy("overrides: {strategy: patch, a: 2, b: 2}"),
			want: []string{removed, strings.Replace(removed, " a ", " b ", 1)},
		},
		"a null, which removes": {
			before: base(gatewayPolicy("overrides: {strategy: patch, a: null}"), routePolicy("a: 1")), write: gatewayPolicy("overrides: {strategy: patch, b: 1}"), want: []string{removed},
		},
		"deleted while a lower policy says the same": {
			before: base(gatewayPolicy(hard), routePolicy("a: 1")), delete: gatewayPolicy(hard), want: []string{removed},
		},
	})
}

// What a policy's own write leaves of its overrides.
func TestOverridesKept(t *testing.T) {
	higher := "targetRefs: [{kind: Gateway, name: g}]\n"
	runOverrideCases(t, map[string]overrideCase{
		"re-applied":                       {before: base(gatewayPolicy(hard)), write: gatewayPolicy(hard)},
		"spelled otherwise":                {before: base(gatewayPolicy(hard)), write: gatewayPolicy("overrides: {strategy: patch, a: 1.0}")},
		"a rule more":                      {before: base(gatewayPolicy(hard)), write: gatewayPolicy("overrides: {strategy: patch, a: 1, b: 1}")},
		"no condition any more":            {before: base(gatewayPolicy(clip)), write: gatewayPolicy("overrides: {strategy: patch, a: 50}")},
		"atomic from now on":               {before: base(gatewayPolicy(hard)), write: gatewayPolicy("overrides: {strategy: atomic, a: 1}")},
		"a default that is edited":         {before: base(gatewayPolicy("defaults: {a: 1}")), write: gatewayPolicy("defaults: {a: 2}")},
		"a default that is deleted":        {before: base(gatewayPolicy("defaults: {a: 1}")), delete: gatewayPolicy("")},
		"one that a higher one beat":       {before: base(gatewayPolicy(hard), routePolicy("overrides: {strategy: patch, a: 2}")), delete: routePolicy("a: 1")},
		"one on a target that has no path": {before: docs(gatewayDoc("g", "istio", "http"), gatewayPolicy(hard)), delete: gatewayPolicy(hard)},
		"a condition met no more, the lower policy complies": {
			before: base(gatewayPolicy(clip), routePolicy("a: 100")), write: routePolicy("a: 30"),
		},
		"a condition met no more, the lower policy goes": {
			before: base(gatewayPolicy(clip), routePolicy("a: 100")), delete: routePolicy("a: 30"),
		},
		"a higher override comes that beats it": {
			before: base(policyDoc("Paint", "app", "top", toRoute+hard)), write: policyDoc("Paint", "infra", "higher", higher+"overrides: {strategy: patch, a: 2}"),
		},
		"a higher atomic override comes that leaves nothing of it": {
			before: base(policyDoc("Paint", "app", "top", toRoute+hard)), write: policyDoc("Paint", "infra", "higher", higher+"overrides: {b: 2}"),
		},
		"a higher override under a condition comes": {
			before: base(policyDoc("Paint", "app", "top", toRoute+hard)), write: policyDoc("Paint", "infra", "higher", higher+"overrides: {strategy: patch, a: 2, when: 'spec.a > 0'}"),
		},
		"a lower policy unsets it": {before: base(gatewayPolicy(hard)), write: routePolicy("unset: [a]\nb: 1")},
	})
}

// A conditional override holds whether its condition is met or not.
func TestConditionalOverrides(t *testing.T) {
	h := gatewayDoc("h", "istio", "http")
	moved := routeDoc("r", "[{}, {matches: [{path: {value: /x}}]}]", "h")
	fromH := evaded("Paint infra/top", "Listener infra/h#http")
	runOverrideCases(t, map[string]overrideCase{
		"met":                            {before: base(gatewayPolicy(clip), routePolicy("a: 100"), h), write: moved, want: fromH},
		"not met":                        {before: base(gatewayPolicy(clip), routePolicy("a: 30"), h), write: moved, want: fromH},
		"with nothing below it":          {before: base(gatewayPolicy(clip), h), write: moved, want: fromH},
		"not met, a lower override":      {before: base(gatewayPolicy(clip), routePolicy("overrides: {strategy: patch, a: 30}"), h), write: moved, want: fromH},
		"deleted while it was not met":   {before: base(gatewayPolicy(clip), routePolicy("a: 30")), delete: gatewayPolicy(clip), want: []string{removed}},
		"deleted, over a lower override": {before: base(gatewayPolicy(clip), routePolicy("overrides: {strategy: patch, a: 30}")), delete: gatewayPolicy(clip), want: []string{removed}},
		"but not where a higher override has its place": {
			before: base(gatewayPolicy(hard), routePolicy("overrides: {strategy: patch, a: 2, when: 'spec.b == 1'}\nb: 1")), delete: routePolicy("a: 1"),
		},
		"and where a higher one under a condition has it": {
			before: base(gatewayPolicy(clip), routePolicy("overrides: {strategy: patch, a: 2, when: 'spec.b == 1'}\nb: 1")), delete: routePolicy("a: 1"),
			of: "Paint app/own", want: []string{strings.Replace(removed, "infra/top", "app/own", 1)},
		},
	})
}

// A profile may make less of losing an override.
func TestProfileSetsActionOfOverrideLoss(t *testing.T) {
	lenientPaint := worlds.ProfileDoc("Paint", "strategy: {allowed: [merge]}\nblocks: {overrides: [overrides]}\nactions: {OverrideRemoved: Warn, OverrideEvaded: Audit}")
	const spec = "overrides: {a: 1}"
	v := world(t, base(lenientPaint, gatewayPolicy(spec), gatewayDoc("h", "istio", "http")))
	dev := func(c guard.Change) []string {
		return findingsOf(t, evaluateAs(t, bossAndDev(), "dev", v, c), "Override")
	}
	assert.Equal(t, []string{"Warn " + removed}, dev(guard.Change{Operation: guard.Delete, Before: v.Get(paintRef("infra", "top"))}))
	assert.Equal(t, []string{"Audit " + evaded("Paint infra/top")[0]},
		dev(change(v, read(t, v, policyDoc("Paint", "infra", "top", "targetRefs: [{kind: Gateway, name: h}]\n"+spec)))))
}
