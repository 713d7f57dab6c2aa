package gateway_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	documentedRule    = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (?:`([^`]*)`)? ?\\| `(\\w+)` \\| `PathPrefix (\\S+)`(?:, method `(\\w+)`)?(?:, header `([\\w-]+): (\\w+)`)? \\|$")
	documentedRequest = regexp.MustCompile("(?m)^\\| `([A-Z]+ http://[^`]+)`(?: with `([^`]+)`)? \\| `(\\w+)` of `(\\w+)` \\|")
)

// The example of docs/semantics.md is served as the page says.
func TestDocumentedPrecedence(t *testing.T) {
	data, err := os.ReadFile("../../docs/semantics.md")
	require.NoError(t, err)
	var names []string // of the routes
	hostnames, rules, positions := map[string]string{}, map[string][]string{}, map[string]string{}
	for _, m := range documentedRule.FindAllStringSubmatch(string(data), -1) {
		route, rule, match := m[1], m[3], m[5]+" "+m[4]
		if m[6] != "" {
			match += " " + m[6] + "=" + m[7]
		}
		if rules[route] == nil {
			names = append(names, route)
		}
		hostnames[route], rules[route] = m[2], append(rules[route], match)
		positions[route+"/"+rule] = fmt.Sprintf("http %s/%d", route, len(rules[route]))
	}
	require.Len(t, positions, 6, "rules on the page")
	ages := map[string]int{"team": 1, "shop": 2, "rest": 3}
	var text strings.Builder // as routerOf reads it
	for _, name := range names {
		fmt.Fprintf(&text, "%s %d %s: %s\n", name, ages[name], hostnames[name], strings.Join(rules[name], " | "))
	}
	requests := documentedRequest.FindAllStringSubmatch(string(data), -1)
	require.Len(t, requests, 7, "requests on the page")
	r, _ := routerOf(t, "http: HTTP 80", text.String())
	for _, m := range requests {
		var headers []string
		if m[2] != "" {
			headers = append(headers, m[2])
		}
		assert.Equal(t, positions[m[4]+"/"+m[3]], servedText(r.Route(request(t, m[1], headers...))), m[0])
	}

	r, _ = routerOf(t, "http: HTTP 80", text.String()+"team 1 shop.example.com: /admin")
	assert.Equal(t, "http team/1", servedText(r.Route(request(t, "GET http://shop.example.com/admin"))), "the last sentence")
}
