package ratelimit

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/messages"
	"overrule.dev/overrule/test/tables"
)

func TestValidSelectors(t *testing.T) {
	valid := tables.Read[struct{ Everywhere, AsCounters []string }](t, "testdata/tables/valid-selectors.yaml")
	for _, selector := range append(valid.Everywhere, valid.AsCounters...) {
		assert.NoError(t, CheckCounter(selector), selector)
	}
	for _, selector := range valid.Everywhere {
		assert.NoError(t, CheckCondition(selector), selector)
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
		"headers without a name":         {"context.request.http.headers", "context.request.http.headers.HEADER"},
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
