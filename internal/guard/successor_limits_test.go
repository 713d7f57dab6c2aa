package guard_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// matches and rules of routes.
const (
	getToys    = "{path: {value: /toys}, method: GET}"
	postToys   = "{path: {value: /toys}, method: POST}"
	getToysOfA = "{path: {value: /toys}, method: GET, headers: [{name: of, value: a}]}"
	putToys    = "{path: {value: /toys}, method: PUT}"
	getCars    = "{path: {value: /toys/cars}, method: GET}"
	likeToys   = "{path: {type: RegularExpression, value: /toys.*}, method: GET}"
	anyPath    = "{path: {value: /}}"
	assets     = "{path: {value: /assets}}"
	toysabc    = "{path: {value: /toysabc}}"
)

// ruling is the route r with a rule for each list of matches.
func ruling(rules ...string) string {
	var out []string
	for _, matches := range rules {
		out = append(out, "{matches: ["+matches+"]}")
	}
	return routeDoc("r", "["+strings.Join(out, ", ")+"]", "g")
}

// Where a rule to which an override's limit is bound gives up a match, its requests
// go to rules whose own it meets.
func TestRequestsLeaveRuleOfBoundOverride(t *testing.T) {
	type rules = []string
	type verdict int
	const (
		no verdict = iota
		yes
		unsure // by the precedence of a regular expression
	)
	both := getToys + ", " + postToys
	for name, c := range map[string]struct {
		trigger       string
		before, after rules
		evaded        verdict
	}{
		"the match gets a header, and a rule for every path is there":   {onGet, rules{getToys, anyPath}, rules{getToysOfA, anyPath}, yes},
		"the match gets a header, and the rule for every path is first": {onGet, rules{anyPath, getToys}, rules{anyPath, getToysOfA}, yes},
		"the match gets a header, and no other rule meets it":           {onGet, rules{getToys, assets}, rules{getToysOfA, assets}, no},
		"the match gets a header, and a path only begins with its":      {onGet, rules{getToys, toysabc}, rules{getToysOfA, toysabc}, no},
		"the match gets a header, and another method is there":          {onGet, rules{getToys, postToys}, rules{getToysOfA, postToys}, no},
		"the match gets a header, and a rule is below":                  {onGet, rules{getToys, getCars}, rules{getToysOfA, getCars}, no},
		"the match gets a header, and an expression may meet it":        {onGet, rules{getToys, likeToys}, rules{getToysOfA, likeToys}, unsure},
		"the match gets a header, and a new rule has it, also bound":    {onGet, rules{getToys, anyPath}, rules{getToysOfA, anyPath, getToys}, no},
		"the match gets a header, in a route of one rule":               {onGet, rules{getToys}, rules{getToysOfA}, no},
		"two rules become one":                                           {onGet, rules{getToys, postToys}, rules{both}, no},
		"two rules become one, to both of which it is bound":             {onToys, rules{getToys, postToys}, rules{both}, no},
		"two rules become one, beside a rule for every path":             {onGet, rules{getToys, postToys, anyPath}, rules{both, anyPath}, no},
		"a rule joins the one for every path":                            {onGet, rules{getToys, anyPath}, rules{anyPath + ", " + getToys}, no},
		"one of two bound matches goes, beside a rule for every path":    {onToys, rules{both, anyPath}, rules{getToys, anyPath}, yes},
		"one of two bound matches goes, and no other rule meets it":      {onToys, rules{both, assets}, rules{getToys, assets}, no},
		"one of two bound matches goes to a rule of its own, also bound": {onToys, rules{both, anyPath}, rules{getToys, anyPath, postToys}, no},
		"a bound rule of two goes, beside a rule for every path":         {onToys, rules{getToys, postToys, anyPath}, rules{getToys, anyPath}, yes},
		"a match comes that is not bound":                                {onGet, rules{getToys}, rules{both}, no},
		"a rule comes that is not bound":                                 {onGet, rules{getToys}, rules{getToys, anyPath}, no},
		"a rule comes that meets the bound one's match":                  {onGet, rules{getToys}, rules{getCars, getToys}, yes},
		"the rules change places":                                        {onGet, rules{getToys, anyPath}, rules{anyPath, getToys}, no},
		"the matches change places":                                      {onToys, rules{both, anyPath}, rules{postToys + ", " + getToys, anyPath}, no},
		"a match of a rule that is not bound goes":                       {onGet, rules{getToys, assets + ", " + anyPath}, rules{getToys, anyPath}, no},
		"a rule that is not bound goes, its requests to one that is":     {onGet, rules{getToys, getCars}, rules{getToys}, no},
		"all rules go": {onGet, rules{getToys, anyPath}, nil, no},
		"an override without triggers is bound to every rule": {"", rules{getToys, anyPath}, rules{getToysOfA, anyPath}, no},
		"the rule for every path is bound, too":               {onGet + ", {matches: [{path: {value: /}}]}", rules{getToys, anyPath}, rules{getToysOfA, anyPath}, no},
	} {
		t.Run(name, func(t *testing.T) {
			before := docs(rate, gatewayDoc("g", "istio", "http"), ruling(c.before...), rateTop(overriding(aLimit("toys", c.trigger))))
			warned := []string{"Warn OverrideEvaded limits.toys"}
			denied := map[verdict][]string{yes: {"Deny OverrideEvaded limits.toys"}, unsure: warned}[c.evaded]
			if c.evaded == no {
				warned = nil
			}
			assert.Equal(t, denied, overrideFindings(t, "dev", before, ruling(c.after...)))
			assert.Equal(t, warned, overrideFindings(t, "boss", before, ruling(c.after...)), "users who are allowed to override are warned")
		})
	}
}

// What the merge of two rules took under an override is under it from then on.
func TestMergedRulesLoseMatch(t *testing.T) {
	override := rateTop(overriding(aLimit("toys", onToys)))
	merged := ruling(getToys+", "+postToys, anyPath)
	apart := docs(rate, gatewayDoc("g", "istio", "http"), ruling(getToys, postToys, anyPath), override)
	assert.Empty(t, overrideFindings(t, "dev", apart, merged))
	together := docs(rate, gatewayDoc("g", "istio", "http"), merged, override)
	assert.Equal(t, []string{"Deny OverrideEvaded limits.toys"}, overrideFindings(t, "dev", together, ruling(getToys, anyPath)))
}

// Each of many rules may take the requests: that is one finding.
func TestRequestsOfManySuccessorsAreReportedOnce(t *testing.T) {
	before := docs(rate, gatewayDoc("g", "istio", "http"), ruling(getToys, anyPath, getCars, assets), rateTop(overriding(aLimit("toys", onGet))))
	v := world(t, before)
	c := change(v, read(t, v, ruling(getToysOfA, anyPath, getCars, assets)))
	assert.Equal(t, []string{"Deny OverrideEvaded limits.toys Rate infra/top: HTTPRoute app/r, HTTPRouteRule app/r#rule-1, HTTPRouteRule app/r#rule-2"}, findingsOf(t, evaluateAs(t, bossAndDev(), "dev", v, c), "Override"))
}
