//go:build integration

package rfc

import (
	"fmt"
	"strings"
)

// rejectedTriggers are limits with a path or a hostname that the pattern of the schema
// rejects, and with a path that is too long.
func rejectedTriggers() map[string]rejected {
	const at, limit = "spec.limits.l.triggers[0]", "{rates: [{limit: 5, unit: second}], triggers: [{%s}]}"
	out := map[string]rejected{"of a path that is too long": {
		Limit: fmt.Sprintf(limit, "matches: [{path: {value: /"+strings.Repeat("a", 1024)+"}}]"),
		Want:  []string{at + ".matches[0].path.value: Too long: may not be more than 1024 bytes"},
	}}
	for name, value := range map[string]string{
		"of a path with an empty step":    "/toys//special",
		"of a path with two slashes":      "//",
		"of a path with a step of a dot":  "/toys/./special",
		"of a path that goes up":          "/toys/../admin",
		"of a path that ends in a dot":    "/toys/.",
		"of a path that ends by going up": "/toys/..",
		"of a path with a hidden slash":   "/toys%2Fspecial",
		"of a path with a small one":      "/toys%2fspecial",
		"of a path with half a code":      "/toys%4",
		"of a path with a fragment":       "/toys#special",
		"of a path with a query":          "/toys?a=b",
		"of a path with a space":          "/toys special",
	} {
		const where = at + ".matches[0].path.value"
		out[name] = rejected{
			Limit: fmt.Sprintf(limit, fmt.Sprintf("matches: [{path: {type: Exact, value: %q}}]", value)),
			Want:  []string{fmt.Sprintf("%s: Invalid value: %q: %s in body should match '%s'", where, value, where, pathPattern)},
		}
	}
	for name, value := range map[string]string{
		"for a hostname in capitals": "Games.acme.com",
		"for a hostname with a port": "games.acme.com:80",
		"for a wildcard at the end":  "games.*",
		"for a wildcard alone":       "*",
	} {
		const where = at + ".hostnames[0]"
		out[name] = rejected{
			Limit: fmt.Sprintf(limit, fmt.Sprintf("hostnames: [%q]", value)),
			Want:  []string{fmt.Sprintf("%s: Invalid value: %q: %s in body should match '%s'", where, value, where, hostnamePattern)},
		}
	}
	return out
}

const hostnamePattern = `^(\*\.)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`

// pathPattern combines nine rules of Gateway API about a path. A path without a
// leading slash passes here, and is rejected with a better message.
const pathPattern = `^([^/].*|/?|(/(\.?([-\w~!$&'()*+,;=:@]|%([013-9a-fA-F][\da-fA-F]|2[\da-eA-E]))|\.\.([-\w.~!$&'()*+,;=:@]|%([013-9a-fA-F][\da-fA-F]|2[\da-eA-E])))` +
	`([-\w.~!$&'()*+,;=:@]|%([013-9a-fA-F][\da-fA-F]|2[\da-eA-E]))*)+/?)$`
