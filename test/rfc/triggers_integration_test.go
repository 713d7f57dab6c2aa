//go:build integration

package rfc

import "strings"

func when(fields string) string { return withRates("when: [{" + fields + "}]") }

// badConditions are limits whose conditions are rejected.
var badConditions = map[string]invalid{
	"with a condition on nothing": {when("operator: exists"), []string{at + ".when[0].selector: Required value"}},
	"with a condition that does not compare": {
		when("selector: auth.identity.group, value: a"), []string{at + ".when[0].operator: Required value"},
	},
	"with an operator of Kuadrant's v1beta2": {when("selector: auth.identity.group, operator: startswith, value: a"), []string{
		at + `.when[0].operator: Unsupported value: "startswith": supported values: "eq", "neq", "exists", "nexists", "matches", "incl", "excl"`,
	}},
	"with the sign of an operator": {when(`selector: auth.identity.group, operator: "==", value: a`), []string{
		at + `.when[0].operator: Unsupported value: "==": supported values: "eq", "neq", "exists", "nexists", "matches", "incl", "excl"`,
	}},
	"compared with nothing by eq":      {when("selector: auth.identity.group, operator: eq"), valueMissing},
	"compared with nothing by neq":     {when("selector: auth.identity.group, operator: neq"), valueMissing},
	"compared with nothing by matches": {when("selector: auth.identity.group, operator: matches"), valueMissing},
	"compared with nothing by incl":    {when("selector: auth.identity.group, operator: incl"), valueMissing},
	"compared with nothing by excl":    {when("selector: auth.identity.group, operator: excl"), valueMissing},
	"compared with null":               {when("selector: auth.identity.group, operator: eq, value: null"), valueMissing},
	"compared by exists":               {when("selector: auth.identity.group, operator: exists, value: a"), valueForbidden},
	"compared by nexists":              {when(`selector: auth.identity.group, operator: nexists, value: ""`), valueForbidden},
	"compared with a number": {when("selector: auth.identity.age, operator: eq, value: 18"), []string{
		at + `.when[0].value: Invalid value: "integer": ` + at + `.when[0].value in body must be of type string: "integer"`,
	}},
	"with a predicate of v1": {when(`predicate: "true"`), []string{`unknown field "` + at + `.when[0].predicate"`}},
	"with a condition that is a map": {withRates("when: {selector: auth.identity.group, operator: exists}"), []string{
		`unknown field "` + at + `.when.operator", unknown field "` + at + `.when.selector"`,
	}},
	"with a space in a selector": {when(`selector: "auth.identity group", operator: exists`), []string{
		at + `.when[0].selector: Invalid value: "auth.identity group": ` + at + `.when[0].selector in body should match '^[^.\s]+(\.[^.\s]+)*$'`,
	}},
	"with a dot too many in a selector": {when("selector: auth..group, operator: exists"), []string{
		at + `.when[0].selector: Invalid value: "auth..group": ` + at + `.when[0].selector in body should match '^[^.\s]+(\.[^.\s]+)*$'`,
	}},
}

var (
	valueMissing   = []string{by + ".when[0].value: Required value: the operator compares with a value; only exists and nexists need none"}
	valueForbidden = []string{by + ".when[0].value: Forbidden: exists and nexists compare with no value; take it away, or take eq or neq"}
)

func trigger(fields string) string { return withRates("triggers: [{" + fields + "}]") }

func match(fields string) string { return trigger("matches: [{" + fields + "}]") }

// badTriggers are limits whose triggers are rejected.
var badTriggers = map[string]invalid{
	"with a trigger that states nothing": {trigger(""), []string{
		at + ".triggers[0]: Invalid value: 0: " + at + ".triggers[0] in body should have at least 1 properties",
	}},
	"with a trigger without a match": {trigger("matches: []"), []string{
		at + ".triggers[0].matches: Invalid value: 0: " + at + ".triggers[0].matches in body should have at least 1 items",
	}},
	"with a trigger for no hostname": {trigger("hostnames: []"), []string{
		at + ".triggers[0].hostnames: Invalid value: 0: " + at + ".triggers[0].hostnames in body should have at least 1 items",
	}},
	"with triggers for a map": {withRates("triggers: {matches: [{method: GET}]}"), []string{`unknown field "` + at + `.triggers.matches"`}},
	"with a match right in the list of triggers": {
		withRates("triggers: [{method: GET}]"), []string{`unknown field "` + at + `.triggers[0].method"`},
	},
	"with a match for a list of methods": {match("method: [GET]"), []string{
		at + `.triggers[0].matches[0].method: Invalid value: "array": ` + at + `.triggers[0].matches[0].method in body must be of type string: "array"`,
		at + `.triggers[0].matches[0].method: Unsupported value: ["GET"]: supported values: "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"`,
	}},
	"of a method in small letters": {match("method: get"), []string{
		at + `.triggers[0].matches[0].method: Unsupported value: "get": supported values: "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"`,
	}},
	"of a path in a word": {match("path: /toys"), []string{
		at + `.triggers[0].matches[0].path: Invalid value: "string": ` + at + `.triggers[0].matches[0].path in body must be of type object: "string"`,
	}},
	"of an unknown type of path": {match("path: {type: Prefix, value: /toys}"), []string{
		at + `.triggers[0].matches[0].path.type: Unsupported value: "Prefix": supported values: "Exact", "PathPrefix", "RegularExpression"`,
	}},
	"of a prefix that is relative": {match("path: {value: toys}"), []string{
		by + ".triggers[0].matches[0].path.value: Invalid value: must be an absolute path, which starts with '/'",
	}},
	"of a path that is relative": {match("path: {type: Exact, value: toys}"), []string{
		by + ".triggers[0].matches[0].path.value: Invalid value: must be an absolute path, which starts with '/'",
	}},
	"of no path": {match(`path: {type: Exact, value: ""}`), []string{
		by + ".triggers[0].matches[0].path.value: Invalid value: must be an absolute path, which starts with '/'",
	}},
	"of a path with an empty step":    {match("path: {type: Exact, value: /toys//special}"), badPath("/toys//special")},
	"of a path with two slashes":      {match("path: {value: //}"), badPath("//")},
	"of a path with a step of a dot":  {match("path: {value: /toys/./special}"), badPath("/toys/./special")},
	"of a path that goes up":          {match("path: {value: /toys/../admin}"), badPath("/toys/../admin")},
	"of a path that ends in a dot":    {match("path: {value: /toys/.}"), badPath("/toys/.")},
	"of a path that ends by going up": {match("path: {value: /toys/..}"), badPath("/toys/..")},
	"of a path with a hidden slash":   {match("path: {value: /toys%2Fspecial}"), badPath("/toys%2Fspecial")},
	"of a path with a small one":      {match("path: {value: /toys%2fspecial}"), badPath("/toys%2fspecial")},
	"of a path with half a code":      {match("path: {value: /toys%4}"), badPath("/toys%4")},
	"of a path with a fragment":       {match(`path: {value: "/toys#special"}`), badPath("/toys#special")},
	"of a path with a query":          {match(`path: {value: "/toys?a=b"}`), badPath("/toys?a=b")},
	"of a path with a space":          {match(`path: {value: "/toys special"}`), badPath("/toys special")},
	"with a typo in a path":           {match(`path: {valeu: "/toys*"}`), []string{`unknown field "` + at + `.triggers[0].matches[0].path.valeu"`}},
	"of a path that is too long": {match("path: {value: /" + strings.Repeat("a", 1024) + "}"), []string{
		at + `.triggers[0].matches[0].path.value: Too long: may not be more than 1024 bytes`,
	}},
	"of a header without a value": {match("headers: [{name: a}]"), []string{at + ".triggers[0].matches[0].headers[0].value: Required value"}},
	"of a header with a space": {match(`headers: [{name: "x canary", value: a}]`), []string{
		at + `.triggers[0].matches[0].headers[0].name: Invalid value: "x canary": ` + at + `.triggers[0].matches[0].headers[0].name in body should match '^[A-Za-z0-9!#$%&'*+\-.^_\x60|~]+$'`,
	}},
	"of the same header twice": {
		match("headers: [{name: a, value: b}, {name: a, value: c}]"), []string{by + `.triggers[0].matches[0].headers[1]: Duplicate value: {"name":"a"}`},
	},
	"of an unknown type of header": {match("headers: [{type: Prefix, name: a, value: b}]"), []string{
		at + `.triggers[0].matches[0].headers[0].type: Unsupported value: "Prefix": supported values: "Exact", "RegularExpression"`,
	}},
	"of headers for a map": {match("headers: {a: b}"), []string{`unknown field "` + at + `.triggers[0].matches[0].headers.a"`}},
	"of a query parameter without a name": {
		match("queryParams: [{value: a}]"), []string{at + ".triggers[0].matches[0].queryParams[0].name: Required value"},
	},
	"of the same query parameter twice": {
		match("queryParams: [{name: a, value: b}, {name: a, value: c}]"), []string{by + `.triggers[0].matches[0].queryParams[1]: Duplicate value: {"name":"a"}`},
	},
	"for a hostname in capitals": {trigger("hostnames: [Games.acme.com]"), badHostname("Games.acme.com")},
	"for a hostname with a port": {trigger(`hostnames: ["games.acme.com:80"]`), badHostname("games.acme.com:80")},
	"for a wildcard at the end":  {trigger(`hostnames: ["games.*"]`), badHostname("games.*")},
	"for a wildcard alone":       {trigger(`hostnames: ["*"]`), badHostname("*")},
	"for the same hostname twice": {
		trigger("hostnames: [a.com, a.com]"), []string{by + `.triggers[0].hostnames[1]: Duplicate value: "a.com"`},
	},
}

func badPath(value string) []string {
	const where = at + ".triggers[0].matches[0].path.value"
	return []string{where + `: Invalid value: "` + value + `": ` + where + ` in body should match '` + pathPattern + `'`}
}

func badHostname(value string) []string {
	const where = at + ".triggers[0].hostnames[0]"
	return []string{where + `: Invalid value: "` + value + `": ` + where +
		` in body should match '^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'`}
}

// pathPattern combines nine rules of Gateway API about a path. A path without a
// leading slash passes here, and is rejected with a better message.
const pathPattern = `^([^/].*|/?|(/(\.?([-\w~!$&'()*+,;=:@]|%([013-9a-fA-F][\da-fA-F]|2[\da-eA-E]))|\.\.([-\w.~!$&'()*+,;=:@]|%([013-9a-fA-F][\da-fA-F]|2[\da-eA-E])))` +
	`([-\w.~!$&'()*+,;=:@]|%([013-9a-fA-F][\da-fA-F]|2[\da-eA-E]))*)+/?)$`
