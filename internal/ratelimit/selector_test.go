package ratelimit

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/messages"
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
	for name, c := range map[string]struct{ selector, names string }{
		"a letter too many":                   {"context.requests.http.size", "context.request.http.size"},
		"letters swapped":                     {"auth.idnetity.username", "auth.identity.username"},
		"a letter left out, behind auth":      {"auth.identiy.username", "auth.identity.username"},
		"another case":                        {"Context.Request.HTTP.Size", "context.request.http.size"},
		"slips in two parts":                  {"context.reqest.http.sheme", "context.request.http.scheme"},
		"the first part left out":             {"request.http.size", "context.request.http.size"},
		"auth left out":                       {"identity.username", "auth.identity.username"},
		"a part in the middle left out":       {"context.request.size", "context.request.http.size"},
		"all but the last left out":           {"hitsAddend", "ratelimit.hitsAddend"},
		"part left out and a slip":            {"source.adress", "context.source.address"},
		"the field of the proto":              {"ratelimit.hits_addend", "ratelimit.hitsAddend"},
		"the first of two that are as near":   {"service", "context.destination.service"},
		"three letters that are others":       {"ratelimit.dexxxiptors.x", "descriptors, domain and hitsAddend"},
		"nothing near":                        {"user.name", "auth, context.destination, context.request.http, context.source or ratelimit"},
		"one word that is nothing":            {"x", "auth, context.destination, context.request.http, context.source or ratelimit"},
		"nothing near below a known part":     {"context.request.http.user", "body, fragment, headers, host, id, method, path, protocol, query, raw_body, scheme and size"},
		"another part of the context":         {"context.tls.sni", "destination, request and source"},
		"below a value":                       {"context.request.http.size.bytes", "context.request.http.size"},
		"a group":                             {"context.request.http", "context.request.http.path"},
		"auth alone":                          {"auth", "auth.identity.username"},
		"labels without a name":               {"context.source.labels", "context.source.labels.app"},
		"descriptors without a name":          {"ratelimit.descriptors", "ratelimit.descriptors.x"},
		"what ties rules to limits":           {"ratelimit.binding", "ratelimit.binding"},
		"what is below it":                    {"ratelimit.binding.x", "ratelimit.binding"},
		"nothing":                             {"", `""`},
		"nothing between dots":                {"auth..username", `""`},
		"nothing behind the last dot":         {"auth.identity.", `""`},
		"a space":                             {"auth.identity.user name", `"user name"`},
		"an expression":                       {"auth.identity.username == 'x'", `"username == 'x'"`},
		"a label that ends in a slash":        {"context.source.labels.app/", `"app/"`},
		"a dot that is escaped":               {`auth.identity.metadata.annotations.a\.b`, `\`},
		"a modifier":                          {"auth.identity.@extract:x", `"@extract:x"`},
		"a line feed":                         {"auth.identity\n", `"identity\n"`},
		"parts of any length are cut in what": {"auth." + strings.Repeat("x", 200) + "!", strings.Repeat("x", 100) + "…"},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckCounter(c.selector)
			require.ErrorContains(t, err, c.names)
			assert.Equal(t, err, CheckCondition(c.selector))
			messages.Golden(t, err.Error())
		})
	}
	for name, c := range map[string]struct{ selector, names string }{
		"a letter left out":              {"context.request.http.pth", "context.request.http.path"},
		"a letter left out at the start": {"contxt.request.http.path", "context.request.http.path"},
		"the name of a header is kept":   {"request.http.header.x.User", "context.request.http.headers.x.User"},
		"headers without a name":         {"context.request.http.headers", "context.request.http.headers.x-user"},
		"nothing behind headers":         {"context.request.http.headers.", `""`},
		"a header with a colon":          {"context.request.http.headers.:path", `":path"`},
	} {
		t.Run("as a counter: "+name, func(t *testing.T) {
			err := CheckCounter(c.selector)
			require.ErrorContains(t, err, c.names)
			messages.Golden(t, err.Error())
		})
	}
}

// The RFC: "soft" conditions are not about the HTTP route.
func TestConditionSelectorsOfTriggers(t *testing.T) {
	for name, c := range map[string]struct{ selector, names string }{
		"the method":            {"context.request.http.method", "triggers[].matches[].method"},
		"the path":              {"context.request.http.path", "triggers[].matches[].path"},
		"the host":              {"context.request.http.host", "triggers[].hostnames"},
		"a header":              {"context.request.http.headers.x-user", "triggers[].matches[].headers"},
		"headers":               {"context.request.http.headers", "triggers[].matches[].headers"},
		"the query":             {"context.request.http.query", "triggers[].matches[].queryParams"},
		"a part of the path":    {"context.request.http.path.1", "triggers[].matches[].path"},
		"a slip of the method":  {"context.request.http.metod", "triggers[].matches[].method"},
		"a part of the host":    {"http.host", "triggers[].hostnames"},
		"a header, in part":     {"headers.x", "triggers[].matches[].headers"},
		"a slip of another one": {"context.request.http.sise", "context.request.http.size"},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckCondition(c.selector)
			require.ErrorContains(t, err, c.names)
			messages.Golden(t, err.Error())
		})
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
