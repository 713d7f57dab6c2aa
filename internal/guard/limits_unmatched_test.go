package guard_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
)

// toItsRule is the first rule of the route r.
const toItsRule = "targetRefs: [{kind: HTTPRoute, name: r, sectionName: rule-1}]\n"

// limitFindings shows the findings about what limits bind to, matches of routes of all
// namespaces included.
func limitFindings(t *testing.T, v *snapshot.View, write string) []string {
	t.Helper()
	var out []string
	for _, text := range findings(t, evaluateBy(t, &guard.Guard{Engine: effective.NewEngine(), ReadsAll: true}, v, write)) {
		_, rest, _ := strings.Cut(text, " ")
		if strings.HasPrefix(rest, "TriggerUnmatched") || strings.HasPrefix(rest, "Limit") {
			out = append(out, text)
		}
	}
	return out
}

// hosted returns a route for hostnames.
func hosted(name, rules, hostnames string) string {
	return strings.Replace(routeDoc(name, rules, "g"), "spec:\n", "spec:\n  hostnames: ["+hostnames+"]\n", 1)
}

func TestLimitKeepsUnmatchedHostname(t *testing.T) {
	outside := "{hostnames: [b.acme.com]}"
	before := docs(rate, gatewayDoc("g", "istio", "http"), hosted("r", stores, "a.acme.com"), rateOwn(limitsDoc(aLimit("a", outside+", "+onToys))))
	assert.Equal(t, []string{"Deny TriggerUnmatched limits.a"}, codes(t, evaluate(t, world(t, before), rateOwn(limitsDoc(aLimit("a", outside)))))[:1])
}
