package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/internal/gateway"
)

// A rule may receive the requests of a removed match if some request can satisfy both,
// by the matching of Gateway API.
func TestMayReceive(t *testing.T) {
	const get, post = ", method: GET", ", method: POST"
	path := func(kind, value string) string { return "path: {type: " + kind + ", value: " + value + "}" }
	prefix := func(value string) string { return path("PathPrefix", value) }
	exact := func(value string) string { return path("Exact", value) }
	expression := func(value string) string { return path("RegularExpression", value) }
	header := func(all string) string { return prefix("/a") + ", headers: [" + all + "]" }
	query := func(all string) string { return prefix("/a") + ", queryParams: [" + all + "]" }
	for name, c := range map[string]struct {
		gone, other string
		want        bool
	}{
		"a method, and any":                              {prefix("/a") + get, prefix("/a"), true},
		"two methods":                                    {prefix("/a") + get, prefix("/a") + post, false},
		"one method, and a header more":                  {prefix("/a") + get, header("{name: x, value: v}") + get, true},
		"a prefix, and the one of all":                   {prefix("/toys"), prefix("/"), true},
		"a prefix, and one below it":                     {prefix("/toys"), prefix("/toys/cars"), true},
		"a prefix, and one that begins with its letters": {prefix("/toys"), prefix("/toysabc"), false},
		"a prefix, and another one":                      {prefix("/toys"), prefix("/assets"), false},
		"a prefix, and it with a slash: not removed":     {prefix("/toys"), prefix("/toys/"), false},
		"a prefix with a slash, and letters more":        {prefix("/toys/"), prefix("/toysabc"), false},
		"a prefix, and one in other letters":             {prefix("/toys"), prefix("/Toys"), false},
		"a prefix of methods, below it another method":   {prefix("/toys") + get, prefix("/toys/cars") + post, false},
		"an exact path, and its prefix":                  {exact("/toys"), prefix("/toys"), true},
		"an exact path, and the prefix of all":           {exact("/toys"), prefix("/"), true},
		"the exact path of the root, and a prefix":       {exact("/"), prefix("/toys"), false},
		"an exact path, and the prefix with a slash":     {exact("/toys"), prefix("/toys/"), true},
		"an exact path below a prefix":                   {exact("/toys/cars"), prefix("/toys"), true},
		"an exact path above a prefix":                   {exact("/toys"), prefix("/toys/cars"), false},
		"an exact path of a prefix and letters more":     {exact("/toysabc"), prefix("/toys"), false},
		"an exact path, and another one":                 {exact("/toys"), exact("/assets"), false},
		"an exact path, and one below it":                {exact("/toys"), exact("/toys/cars"), false},
		"an exact path, of another method":               {exact("/toys") + get, exact("/toys"), true},
		"an expression, and a prefix that it excludes":   {expression("/toys.*"), prefix("/assets"), false},
		"an expression, and a prefix":                    {expression("/.*toys"), prefix("/assets"), true},
		"an expression, and an exact path":               {expression("/toys.*"), exact("/toys"), true},
		"two expressions":                                {expression("/toys.*"), expression("/t.*"), true},
		"an expression, of another method":               {expression("/toys.*") + get, prefix("/toys") + post, false},
		"one header, and two values":                     {header("{name: x, value: v}"), header("{name: x, value: w}"), false},
		"one header in other letters, and two values":    {header("{name: x-a, value: v}"), header("{name: X-A, value: w}"), false},
		"one header and its value, and another one":      {header("{name: x, value: v}"), header("{name: x, value: v}, {name: z, value: w}"), true},
		"two headers":        {header("{name: x, value: v}"), header("{name: z, value: w}"), true},
		"a header, and none": {header("{name: x, value: v}"), prefix("/a"), true},
		"a header's value, and an expression for it":      {header("{name: x, value: v}"), header("{name: x, value: '(v|w)', type: RegularExpression}"), true},
		"a header's value, and an expression for another": {header("{name: x, value: v}"), header("{name: x, value: w, type: RegularExpression}"), false},
		"a header of two, and two values":                 {header("{name: z, value: w}, {name: x, value: v}"), header("{name: x, value: w}"), false},
		"one parameter, and two values":                   {query("{name: x, value: v}"), query("{name: x, value: w}"), false},
		"a parameter in other letters is another one":     {query("{name: x, value: v}"), query("{name: X, value: w}"), true},
		"one parameter, and another one":                  {query("{name: x, value: v}"), query("{name: z, value: w}"), true},
		"a parameter, and none":                           {query("{name: x, value: v}"), prefix("/a"), true},
		"a parameter's value, and an expression for it":   {query("{name: x, value: v}"), query("{name: x, value: '[a-v]', type: RegularExpression}"), true},
		"a header, and a parameter of that name":          {header("{name: x, value: v}"), query("{name: x, value: w}"), true},
		"a match that states nothing is for all requests": {prefix("/a") + get, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := ruled(t, "[{matches: [{"+c.gone+"}]}]"), ruled(t, "[{matches: [{"+c.other+"}]}]")
			assert.Equal(t, c.want, gateway.MayReceive(before, 0, after, 0))
			assert.Equal(t, c.want, gateway.MayReceive(after, 0, before, 0), "the other way")
		})
	}
}

// Requests of a match that some rule still has go to that rule.
func TestMayReceiveNothingIfMatchRemains(t *testing.T) {
	const (
		all   = "{}"
		get   = "{path: {value: /toys}, method: GET}"
		post  = "{path: {value: /toys}, method: POST}"
		below = "{path: {value: /toys/cars}}"
		other = "{path: {value: /assets}}"
		wrong = "{path: 1}"
	)
	rules := func(matches ...string) string {
		out := "["
		for _, m := range matches {
			out += "{matches: [" + m + "]}, "
		}
		return out + "]"
	}
	for name, c := range map[string]struct {
		before, after string
		loses         bool
		takers        []int // of the requests of the first rule
	}{
		"nothing changed":                                 {rules(get, all), rules(get, all), false, nil},
		"the rules change places":                         {rules(get, all), rules(all, get), false, nil},
		"a match moves to another rule":                   {rules(get, all), rules(all + ", " + get), false, nil},
		"a rule is split":                                 {rules(get+", "+post, all), rules(get, all, post), false, nil},
		"a match that another rule had, too":              {rules(get+", "+post, post), rules(get, post), false, nil},
		"a match is spelled with its defaults":            {rules(get, all), rules("{path: {type: PathPrefix, value: /toys}, method: GET}", all), false, nil},
		"a match is removed, and one rule matches more":   {rules(get+", "+post, all, other), rules(get, all, other), true, []int{1}},
		"a match is removed, and rules match parts of it": {rules(get, other, below), rules(other, below), true, []int{1}},
		"a match is removed, and no rule overlaps":        {rules(get+", "+post, other), rules(get, other), true, nil},
		"another rule's match is removed":                 {rules(get, post, all), rules(get, all), false, nil},
		"two are removed, and one overlaps":               {rules(get+", "+other, all), rules("{path: {value: /assets/x}}"), true, []int{0}},
		"the route has no rules":                          {rules(get), "[]", true, nil},
		"matches that cannot be read are for any":         {rules(get), rules(wrong, other), true, []int{0}},
		"an invalid match may go to any rule":             {rules(wrong), rules(get, other), true, []int{0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := ruled(t, c.before), ruled(t, c.after)
			var takers []int
			for i := range after.Rules {
				if gateway.MayReceive(before, 0, after, i) {
					takers = append(takers, i)
				}
			}
			assert.Equal(t, c.loses, gateway.LosesMatches(before, 0, after))
			assert.Equal(t, c.takers, takers)
		})
	}
}

// Rules of GRPCRoutes are compared by service and method.
func TestMayReceiveGRPCRoute(t *testing.T) {
	routed := func(rules string) *gateway.Route {
		return grpcRoute(t, "metadata: {namespace: app, name: r}\nspec: {rules: "+rules+"}")
	}
	const a, b = "{matches: [{method: {service: a}}]}", "{matches: [{method: {service: b}}]}"
	both := routed("[" + a + ", " + b + "]")
	assert.True(t, gateway.LosesMatches(both, 0, routed("["+b+"]")))
	assert.False(t, gateway.MayReceive(both, 0, routed("["+b+"]"), 0), "another service")
	assert.True(t, gateway.MayReceive(both, 0, routed("[{matches: [{method: {method: m}}]}]"), 0), "a method of any service")
	assert.False(t, gateway.LosesMatches(both, 0, routed("["+b+", "+a+"]")))
	assert.False(t, gateway.MayReceive(both, 0, routed("["+b+", "+a+"]"), 0))
	assert.False(t, gateway.MayReceive(routed("[{}]"), 0, routed("["+a+", {}]"), 0), "the rule for every request is there")
	assert.True(t, gateway.MayReceive(routed("[{}]"), 0, routed("["+a+"]"), 0))
}
