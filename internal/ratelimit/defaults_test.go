package ratelimit

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/runtime"
)

// The defaults of the RFC and of Gateway API are set, and nothing else.
func TestDefaulted(t *testing.T) {
	trigger := func(match string) string { return "{triggers: [{matches: [" + match + "]}]}" }
	for name, c := range map[string]struct{ limit, want string }{
		"a rate is for one of its unit":          {"{rates: [{limit: 5, unit: minute}]}", "{rates: [{limit: 5, unit: minute, duration: 1}]}"},
		"each rate":                              {"{rates: [{unit: day}, {unit: hour, duration: 2}]}", "{rates: [{unit: day, duration: 1}, {unit: hour, duration: 2}]}"},
		"a duration that is null":                {"{rates: [{unit: day, duration: null}]}", "{rates: [{unit: day, duration: 1}]}"},
		"a path is a prefix":                     {trigger("{path: {value: /toys}}"), trigger("{path: {type: PathPrefix, value: /toys}}")},
		"a path is the one of all":               {trigger("{path: {type: Exact}}"), trigger("{path: {type: Exact, value: /}}")},
		"a path that says nothing":               {trigger("{path: {}}"), trigger("{path: {type: PathPrefix, value: /}}")},
		"a path of another type stays":           {trigger("{path: {type: RegularExpression, value: /a.*}}"), trigger("{path: {type: RegularExpression, value: /a.*}}")},
		"no path stays none: any will do":        {trigger("{method: GET}"), trigger("{method: GET}")},
		"a header is exact":                      {trigger("{headers: [{name: a, value: b}]}"), trigger("{headers: [{name: a, value: b, type: Exact}]}")},
		"each header, as far as it says nothing": {trigger("{headers: [{name: a, value: b, type: RegularExpression}, {name: c, value: d}]}"), trigger("{headers: [{name: a, value: b, type: RegularExpression}, {name: c, value: d, type: Exact}]}")},
		"a query parameter is exact":             {trigger("{queryParams: [{name: a, value: b}]}"), trigger("{queryParams: [{name: a, value: b, type: Exact}]}")},
		"each match":                             {trigger("{path: {value: /a}}, {path: {value: /b}}"), trigger("{path: {type: PathPrefix, value: /a}}, {path: {type: PathPrefix, value: /b}}")},
		"each trigger":                           {"{triggers: [{hostnames: [a.b]}, {matches: [{path: {value: /a}}]}]}", "{triggers: [{hostnames: [a.b]}, {matches: [{path: {type: PathPrefix, value: /a}}]}]}"},
		"counters and conditions have none":      {"{counters: [auth.identity.name], when: [{selector: auth.identity.name, operator: exists}]}", "{counters: [auth.identity.name], when: [{selector: auth.identity.name, operator: exists}]}"},
		"what is not of the form stays":          {"{rates: {limit: 5}, triggers: [1, {matches: 2}, {matches: [3, {path: 4, headers: [5]}]}]}", "{rates: {limit: 5}, triggers: [1, {matches: 2}, {matches: [3, {path: 4, headers: [5]}]}]}"},
		"what is no limit at all":                {"[{rates: [{limit: 5, unit: day}]}]", "[{rates: [{limit: 5, unit: day}]}]"},
		"what is filled in already":              {"{rates: [{limit: 5, unit: day, duration: 1}]}", "{rates: [{limit: 5, unit: day, duration: 1}]}"},
		"a limit that says nothing":              {"{}", "{}"},
	} {
		t.Run(name, func(t *testing.T) {
			given := decoded(t, c.limit)
			before := runtime.DeepCopyJSONValue(given)
			got := Defaulted(given)
			assert.Equal(t, decoded(t, c.want), got)
			assert.Equal(t, before, given, "the value is not edited")
			assert.Equal(t, got, Defaulted(got), "once more changes nothing")
		})
	}
}

// The default duration is an int64, as in a decoded object.
func TestDefaultedDurationIsInteger(t *testing.T) {
	got := Defaulted(map[string]any{"rates": []any{map[string]any{"limit": int64(5), "unit": "day"}}})
	assert.Equal(t, map[string]any{"rates": []any{map[string]any{"limit": int64(5), "unit": "day", "duration": int64(1)}}}, got)
}
