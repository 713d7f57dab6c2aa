package ratelimit

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestValidSelectors(t *testing.T) {
	for _, selector := range []string{
		// not about the route: for conditions, too
		"auth.identity.username", "auth.identity.group", "auth.metadata.geo.country", "auth.authorization.opa.limit",
		"auth.response.x", "auth.callbacks.x", "auth.identity", "auth.mine.level", "auth.identity.roles.0",
		"context.source.address", "context.source.address.socketAddress.portValue", "context.source.service",
		"context.source.labels.app.kubernetes.io/name", "context.source.principal", "context.source.certificate",
		"context.destination.address", "context.destination.service", "context.destination.labels.app",
		"context.destination.principal", "context.destination.certificate",
		"context.request.time", "context.request.time.seconds",
		"context.request.http.id", "context.request.http.scheme", "context.request.http.fragment", "context.request.http.size",
		"context.request.http.protocol", "context.request.http.body", "context.request.http.raw_body",
		"ratelimit.domain", "ratelimit.descriptors.x.y", "ratelimit.hitsAddend",
	} {
		t.Run("everywhere: "+selector, func(t *testing.T) {
			assert.NoError(t, CheckCounter(selector))
			assert.NoError(t, CheckCondition(selector))
		})
	}
	for _, selector := range []string{
		"context.request.http.method", "context.request.http.path", "context.request.http.host", "context.request.http.query",
		"context.request.http.headers.x-user", "context.request.http.headers.X-User", "context.request.http.headers.x.user",
	} {
		t.Run("as a counter: "+selector, func(t *testing.T) { assert.NoError(t, CheckCounter(selector)) })
	}
}

func TestInvalidSelectors(t *testing.T) {
	const (
		unknown = "unknown selector: "
		starts  = unknown + "must start with auth, context.destination, context.request.http, context.source or ratelimit"
		group   = "must select a value; use one of its fields, such as "
		written = " is not a valid segment; use a selector such as auth.identity.username"
	)
	for name, c := range map[string]struct{ selector, want string }{
		"a letter too many":                   {"context.requests.http.size", unknown + "did you mean context.request.http.size?"},
		"letters swapped":                     {"auth.idnetity.username", unknown + "did you mean auth.identity.username?"},
		"a letter left out, behind auth":      {"auth.identiy.username", unknown + "did you mean auth.identity.username?"},
		"another case":                        {"Context.Request.HTTP.Size", unknown + "did you mean context.request.http.size?"},
		"slips in two parts":                  {"context.reqest.http.sheme", unknown + "did you mean context.request.http.scheme?"},
		"the first part left out":             {"request.http.size", unknown + "did you mean context.request.http.size?"},
		"auth left out":                       {"identity.username", unknown + "did you mean auth.identity.username?"},
		"a part in the middle left out":       {"context.request.size", unknown + "did you mean context.request.http.size?"},
		"all but the last left out":           {"hitsAddend", unknown + "did you mean ratelimit.hitsAddend?"},
		"part left out and a slip":            {"source.adress", unknown + "did you mean context.source.address?"},
		"the field of the proto":              {"ratelimit.hits_addend", unknown + "did you mean ratelimit.hitsAddend?"},
		"the first of two that are as near":   {"service", unknown + "did you mean context.destination.service?"},
		"three letters that are others":       {"ratelimit.dexxxiptors.x", unknown + "ratelimit has the fields descriptors, domain and hitsAddend"},
		"nothing near":                        {"user.name", starts},
		"one word that is nothing":            {"x", starts},
		"nothing near below a known part":     {"context.request.http.user", unknown + "context.request.http has the fields body, fragment, headers, host, id, method, path, protocol, query, raw_body, scheme and size"},
		"another part of the context":         {"context.tls.sni", unknown + "context has the fields destination, request and source"},
		"below a value":                       {"context.request.http.size.bytes", unknown + "context.request.http.size has no fields"},
		"a group":                             {"context.request.http", group + "context.request.http.path"},
		"auth alone":                          {"auth", group + "auth.identity.username"},
		"labels without a name":               {"context.source.labels", group + "context.source.labels.app"},
		"descriptors without a name":          {"ratelimit.descriptors", group + "ratelimit.descriptors.x"},
		"what ties rules to limits":           {"ratelimit.binding", "ratelimit.binding is reserved; use another selector"},
		"what is below it":                    {"ratelimit.binding.x", "ratelimit.binding is reserved; use another selector"},
		"nothing":                             {"", `invalid selector: ""` + written},
		"nothing between dots":                {"auth..username", `invalid selector: ""` + written},
		"nothing behind the last dot":         {"auth.identity.", `invalid selector: ""` + written},
		"a space":                             {"auth.identity.user name", `invalid selector: "user name"` + written},
		"an expression":                       {"auth.identity.username == 'x'", `invalid selector: "username == 'x'"` + written},
		"a label that ends in a slash":        {"context.source.labels.app/", `invalid selector: "app/"` + written},
		"a dot that is escaped":               {`auth.identity.metadata.annotations.a\.b`, `invalid selector: dots cannot be escaped with \; use a selector such as auth.identity.username`},
		"a modifier":                          {"auth.identity.@extract:x", `invalid selector: "@extract:x"` + written},
		"a line feed":                         {"auth.identity\n", `invalid selector: "identity\n"` + written},
		"parts of any length are cut in what": {"auth." + strings.Repeat("x", 200) + "!", `invalid selector: "` + strings.Repeat("x", 100) + `…"` + written},
	} {
		t.Run(name, func(t *testing.T) {
			assert.EqualError(t, CheckCounter(c.selector), c.want)
			assert.EqualError(t, CheckCondition(c.selector), c.want)
		})
	}
	for name, c := range map[string]struct{ selector, want string }{
		"a letter left out":              {"context.request.http.pth", unknown + "did you mean context.request.http.path?"},
		"a letter left out at the start": {"contxt.request.http.path", unknown + "did you mean context.request.http.path?"},
		"the name of a header is kept":   {"request.http.header.x.User", unknown + "did you mean context.request.http.headers.x.User?"},
		"headers without a name":         {"context.request.http.headers", group + "context.request.http.headers.x-user"},
		"nothing behind headers":         {"context.request.http.headers.", `invalid selector: ""` + written},
		"a header with a colon":          {"context.request.http.headers.:path", `invalid selector: ":path"` + written},
	} {
		t.Run("as a counter: "+name, func(t *testing.T) { assert.EqualError(t, CheckCounter(c.selector), c.want) })
	}
}

// The RFC: "soft" conditions are not about the HTTP route.
func TestConditionSelectorsOfTriggers(t *testing.T) {
	for name, c := range map[string]struct{ selector, want string }{
		"the method":            {"context.request.http.method", "is not allowed in conditions; use triggers[].matches[].method"},
		"the path":              {"context.request.http.path", "is not allowed in conditions; use triggers[].matches[].path"},
		"the host":              {"context.request.http.host", "is not allowed in conditions; use triggers[].hostnames"},
		"a header":              {"context.request.http.headers.x-user", "is not allowed in conditions; use triggers[].matches[].headers"},
		"headers":               {"context.request.http.headers", "is not allowed in conditions; use triggers[].matches[].headers"},
		"the query":             {"context.request.http.query", "is not allowed in conditions; use triggers[].matches[].queryParams"},
		"a part of the path":    {"context.request.http.path.1", "is not allowed in conditions; use triggers[].matches[].path"},
		"a slip of the method":  {"context.request.http.metod", "unknown selector: if you mean context.request.http.method, use triggers[].matches[].method"},
		"a part of the host":    {"http.host", "unknown selector: if you mean context.request.http.host, use triggers[].hostnames"},
		"a header, in part":     {"headers.x", "unknown selector: if you mean context.request.http.headers.x, use triggers[].matches[].headers"},
		"a slip of another one": {"context.request.http.sise", "unknown selector: did you mean context.request.http.size?"},
	} {
		t.Run(name, func(t *testing.T) { assert.EqualError(t, CheckCondition(c.selector), c.want) })
	}
}

func TestSegments(t *testing.T) {
	for selector, want := range map[string][]string{
		"auth.identity.username":              {"auth", "identity", "username"},
		"context.request.http.headers.x.user": {"context", "request", "http", "headers", "x.user"},
		"context.source.labels.k8s.io/name":   {"context", "source", "labels", "k8s.io/name"},
		"context.request.http.path":           {"context", "request", "http", "path"},
		"x":                                   {"x"},
	} {
		t.Run(selector, func(t *testing.T) { assert.Equal(t, want, Segments(selector)) })
	}
}
