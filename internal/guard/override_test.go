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
	if len(w.want) > 0 {
		checkUnlisted(t, v, c, strings.Fields(w.of)[0])
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

const two = "[{}, {matches: [{path: {value: /x}}]}]" // the rules of base

// at is a policy of infra on a gateway or a listener of it.
func at(gw, section string) string {
	if section != "" {
		section = ", sectionName: " + section
	}
	return policyDoc("Paint", "infra", "top", "targetRefs: [{kind: Gateway, name: "+gw+section+"}]\n"+hard)
}

// toParents is the HTTPRoute app/r with these parents.
func toParents(rules string, parents ...string) string {
	return worlds.RouteTo("HTTPRoute", "app", "r", rules, parents...)
}
