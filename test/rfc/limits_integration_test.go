//go:build integration

package rfc

// at and by are the paths of a limit in error messages: the API server uses at
// for the schema, and by for lists and rules.
const (
	at = "spec.limits.l"
	by = "spec.limits[l]"
)

// withRates adds rates to the fields of a limit.
func withRates(rest string) string { return "{rates: [{limit: 5, unit: second}], " + rest + "}" }

// invalid is a limit or a spec, and the errors of the API server.
type invalid struct {
	written string
	want    []string
}

// badLimits are rejected in every block.
var badLimits = map[string]invalid{
	"that is a list, as in the RFC's examples 1 and 8": {
		"[{rates: [{limit: 5, unit: second}]}]", []string{`unknown field "` + at + `[0].rates"`},
	},
	"that is a number":     {"5", []string{at + `: Invalid value: "integer": ` + at + ` in body must be of type object: "integer"`}},
	"with no rates":        {"{}", []string{at + ".rates: Required value"}},
	"with an empty list":   {"{rates: []}", []string{at + ".rates: Invalid value: 0: " + at + ".rates in body should have at least 1 items"}},
	"with rates for a map": {"{rates: {limit: 5, unit: second}}", []string{`unknown field "` + at + `.rates.limit", unknown field "` + at + `.rates.unit"`}},
	"with matches of its own, as in the RFC's section on triggers": {
		withRates("matches: [{method: GET}]"), []string{`unknown field "` + at + `.matches"`},
	},
	"with hostnames of its own": {withRates("hostnames: [a.com]"), []string{`unknown field "` + at + `.hostnames"`}},
	"with a typo":               {withRates("trigers: []"), []string{`unknown field "` + at + `.trigers"`}},
	"of Kuadrant's v1":          {"{rates: [{limit: 5, window: 10s}]}", []string{`unknown field "` + at + `.rates[0].window"`}},

	"of zero requests": {rate("limit: 0, unit: second"), []string{
		at + ".rates[0].limit: Invalid value: 0: " + at + ".rates[0].limit in body should be greater than or equal to 1",
	}},
	"of fewer": {rate("limit: -5, unit: second"), []string{
		at + ".rates[0].limit: Invalid value: -5: " + at + ".rates[0].limit in body should be greater than or equal to 1",
	}},
	"of requests in words": {rate(`limit: "5", unit: second`), []string{
		at + `.rates[0].limit: Invalid value: "string": ` + at + `.rates[0].limit in body must be of type integer: "string"`,
	}},
	"of part of a request": {rate("limit: 0.5, unit: second"), []string{
		at + `.rates[0].limit: Invalid value: "float64": ` + at + `.rates[0].limit in body must be of type int64: "float64"`,
		at + ".rates[0].limit: Invalid value: 0.5: " + at + ".rates[0].limit in body should be greater than or equal to 1",
	}},
	"of more requests than 64 bits hold": {rate("limit: 9223372036854775808, unit: second"), []string{
		at + `.rates[0].limit: Invalid value: "float64": ` + at + `.rates[0].limit in body must be of type int64: "float64"`,
	}},
	"of unsaid requests": {rate("unit: second"), []string{at + ".rates[0].limit: Required value"}},
	"in an unsaid unit":  {rate("limit: 5"), []string{at + ".rates[0].unit: Required value"}},
	"in an unknown unit": {rate("limit: 5, unit: week"), []string{
		at + `.rates[0].unit: Unsupported value: "week": supported values: "second", "minute", "hour", "day"`,
	}},
	"in a unit in capitals": {rate("limit: 5, unit: Second"), []string{
		at + `.rates[0].unit: Unsupported value: "Second": supported values: "second", "minute", "hour", "day"`,
	}},
	"in no time": {rate("limit: 5, duration: 0, unit: second"), []string{
		at + ".rates[0].duration: Invalid value: 0: " + at + ".rates[0].duration in body should be greater than or equal to 1",
	}},
	"in the past": {rate("limit: 5, duration: -1, unit: second"), []string{
		at + ".rates[0].duration: Invalid value: -1: " + at + ".rates[0].duration in body should be greater than or equal to 1",
	}},
	"in a span in words": {rate(`limit: 5, duration: 10s, unit: second`), []string{
		at + `.rates[0].duration: Invalid value: "string": ` + at + `.rates[0].duration in body must be of type integer: "string"`,
	}},
	"in one minute more than 64 bits have seconds for": {rate("limit: 5, duration: 153722867280912931, unit: minute"), overflow},
	"in one hour more": {rate("limit: 5, duration: 2562047788015216, unit: hour"), overflow},
	"in one day more":  {rate("limit: 5, duration: 106751991167301, unit: day"), overflow},
	"whose second rate is wrong": {"{rates: [{limit: 5, unit: second}, {limit: 0, unit: second}]}", []string{
		at + ".rates[1].limit: Invalid value: 0: " + at + ".rates[1].limit in body should be greater than or equal to 1",
	}},

	"with a counter that is an expression of v1": {
		withRates("counters: [{expression: auth.identity.username}]"), []string{`unknown field "` + at + `.counters[0].expression"`},
	},
	"with a counter in words": {withRates(`counters: ["the user"]`), []string{
		at + `.counters[0]: Invalid value: "the user": ` + at + `.counters[0] in body should match '^[^.\s]+(\.[^.\s]+)*$'`,
	}},
	"with a counter that ends in a dot": {withRates("counters: [auth.identity.]"), []string{
		at + `.counters[0]: Invalid value: "auth.identity.": ` + at + `.counters[0] in body should match '^[^.\s]+(\.[^.\s]+)*$'`,
	}},
	"with the same counter twice": {
		withRates("counters: [auth.identity.username, auth.identity.username]"), []string{by + `.counters[1]: Duplicate value: "auth.identity.username"`},
	},
}

// overflow is the error for a span that is too long.
var overflow = []string{by + ".rates[0].duration: Invalid value: the span in seconds does not fit 64 bits; take a shorter one"}

func rate(fields string) string { return "{rates: [{" + fields + "}]}" }

// goodLimits are accepted in every block.
var goodLimits = map[string]string{
	"of a rate alone":      rate("limit: 5, unit: second"),
	"of the most requests": rate("limit: 9223372036854775807, unit: second"),
	"of the most seconds":  rate("limit: 1, duration: 9223372036854775807, unit: second"),
	"of the most minutes":  rate("limit: 1, duration: 153722867280912930, unit: minute"),
	"of the most hours":    rate("limit: 1, duration: 2562047788015215, unit: hour"),
	"of the most days":     rate("limit: 1, duration: 106751991167300, unit: day"),
	"of several rates":     "{rates: [{limit: 5, unit: minute}, {limit: 100, duration: 12, unit: hour}]}",
	"with empty lists":     withRates("counters: [], when: [], triggers: []"),
	"with all operators": withRates("when: [" +
		"{selector: auth.identity.group, operator: eq, value: a}, {selector: auth.identity.group, operator: neq, value: a}, " +
		"{selector: auth.identity.group, operator: exists}, {selector: auth.identity.group, operator: nexists}, " +
		"{selector: auth.identity.group, operator: matches, value: ^a$}, " +
		"{selector: auth.identity.groups, operator: incl, value: a}, {selector: auth.identity.groups, operator: excl, value: a}]"),
	"compared with nothing":               withRates(`when: [{selector: auth.identity.group, operator: eq, value: ""}]`),
	"counted by a header":                 withRates("counters: [context.request.http.headers.x-tenant]"),
	"of every method":                     withRates("triggers: [{matches: [{method: GET}, {method: HEAD}, {method: POST}, {method: PUT}, {method: DELETE}, {method: CONNECT}, {method: OPTIONS}, {method: TRACE}, {method: PATCH}]}]"),
	"of a path that is an expression":     withRates(`triggers: [{matches: [{path: {type: RegularExpression, value: "toys//.*"}}]}]`),
	"of a path with all its characters":   withRates(`triggers: [{matches: [{path: {value: "/a.b/..c/.../"}}, {path: {value: "/-._~!$&'()*+,;=:@%41"}}]}]`),
	"of a path of dots that are no steps": withRates(`triggers: [{matches: [{path: {value: "/.well-known/x"}}, {path: {value: /...}}, {path: {value: /..a/b..}}]}]`),
	"of hostnames alone":                  withRates(`triggers: [{hostnames: [games.acme.com, "*.acme.com"]}]`),
	"of anything":                         withRates("triggers: [{matches: [{}]}]"),
}

// badSpecs are rejected although their limits are valid.
var badSpecs = map[string]invalid{
	"that targets another group": {
		"{targetRef: {group: apps, kind: HTTPRoute, name: a}}",
		[]string{`spec.targetRef.group: Unsupported value: "apps": supported values: "gateway.networking.k8s.io"`},
	},
	"that targets another kind": {
		"{targetRef: {group: gateway.networking.k8s.io, kind: Service, name: a}}",
		[]string{`spec.targetRef.kind: Unsupported value: "Service": supported values: "Gateway", "HTTPRoute", "GRPCRoute"`},
	},
	"that targets another namespace": {
		"{targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: a, namespace: b}}",
		[]string{`unknown field "spec.targetRef.namespace"`},
	},
	"that targets nothing": {"{targetRef: null}", []string{`spec.targetRef: Required value`}},
	"that targets something without a name": {
		`{targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute}}`, []string{"spec.targetRef.name: Required value"},
	},
	"with a list of limits":           {"{limits: [{rates: [{limit: 5, unit: second}]}]}", []string{`unknown field "spec.limits[0].rates"`}},
	"with an unknown strategy":        {"{defaults: {strategy: patch}}", []string{`spec.defaults.strategy: Unsupported value: "patch": supported values: "atomic", "merge"`}},
	"with a strategy for bare limits": {"{strategy: merge}", []string{`unknown field "spec.strategy"`}},
	"with predicates of v1":           {`{overrides: {when: [{predicate: "true"}]}}`, []string{`unknown field "spec.overrides.when[0].predicate"`}},
	"with predicates of v1 on top":    {`{when: [{predicate: "true"}]}`, []string{`unknown field "spec.when"`}},
	"with the fields of v1beta1":      {"{rateLimits: []}", []string{`unknown field "spec.rateLimits"`}},
	"with a name for a list":          {"{unset: games}", []string{`spec.unset: Invalid value: "string": spec.unset in body must be of type array: "string"`}},
}

var goodSpecs = map[string]string{
	"with nothing but a target": "{}",
	"on a gateway's listener":   "{targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: a, sectionName: http}}",
	"on a rule of a gRPC route": "{targetRef: {group: gateway.networking.k8s.io, kind: GRPCRoute, name: a, sectionName: b}}",
	"with all blocks":           "{limits: {a: {rates: [{limit: 1, unit: day}]}}, defaults: {limits: {}}, overrides: {strategy: merge, limits: {}}}",
}
