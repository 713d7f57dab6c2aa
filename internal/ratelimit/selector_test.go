package ratelimit

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/messages"
	"overrule.dev/overrule/test/tables"
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
	for name, c := range tables.Read[map[string]struct{ Selector, Names string }](t, "testdata/tables/invalid-selectors.yaml") {
		t.Run(name, func(t *testing.T) {
			err := CheckCounter(c.Selector)
			require.ErrorContains(t, err, c.Names)
			assert.Equal(t, err, CheckCondition(c.Selector))
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
	for name, c := range tables.Read[map[string]struct{ Selector, Names string }](t, "testdata/tables/condition-selectors-of-triggers.yaml") {
		t.Run(name, func(t *testing.T) {
			err := CheckCondition(c.Selector)
			require.ErrorContains(t, err, c.Names)
			messages.Golden(t, err.Error())
		})
	}
}
