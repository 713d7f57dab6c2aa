package ratelimit

import (
	"maps"
	"slices"
	"strings"

	"overrule.dev/overrule/internal/editdistance"
)

// objectFields are the fields that an object of a limit may have.
type objectFields struct {
	fields []string
	// hints are what to write instead of fields of other versions of the API, and of
	// fields that belong to another object of the limit.
	hints map[string]string
}

var (
	limitFields = objectFields{[]string{"rates", "counters", "when", "triggers"}, map[string]string{
		"matches":        "move it to triggers: [{matches: …}]",
		"hostnames":      "move it to triggers: [{hostnames: …}]",
		"routeSelectors": "use triggers",
		"rules":          "use triggers",
		"conditions":     "use when, with selector, operator and value",
		"variables":      "use counters",
		"configurations": "remove it: it is generated from when and counters",
		"limit":          "move it to rates: [{limit: …, unit: …}]",
		"duration":       "move it to rates: [{limit: …, duration: …, unit: …}]",
		"unit":           "move it to rates: [{limit: …, unit: …}]",
		"maxValue":       "use rates: [{limit: …, unit: …}]",
		"seconds":        "use rates: [{limit: …, duration: …, unit: second}]",
	}}
	rateFields = objectFields{[]string{"limit", "duration", "unit"}, map[string]string{
		"maxValue": "use limit",
		"seconds":  "use duration, and unit: second",
		"window":   "use duration and unit",
	}}
	conditionFields = objectFields{[]string{"selector", "operator", "value"}, map[string]string{
		"predicate": "use selector, operator and value",
	}}
	triggerObjectFields = objectFields{[]string{"matches", "hostnames"}, map[string]string{
		"path":        "move it to matches: [{path: …}]",
		"method":      "move it to matches: [{method: …}]",
		"headers":     "move it to matches: [{headers: …}]",
		"queryParams": "move it to matches: [{queryParams: …}]",
		"hosts":       "use hostnames",
	}}
	matchFields = objectFields{[]string{"path", "method", "headers", "queryParams"}, map[string]string{
		"hostnames": "move it to the trigger",
	}}
	pathFields  = objectFields{[]string{"type", "value"}, nil}
	valueFields = objectFields{[]string{"type", "name", "value"}, nil}
)

// unknownFieldDetail returns the detail of the error for an unknown field.
func (s objectFields) unknownFieldDetail(name string) string {
	if hint, ok := s.hints[name]; ok {
		return "unknown field: " + hint
	}
	if closest := editdistance.Closest(name, s.fields); closest != "" {
		return "unknown field: did you mean " + closest + "?"
	}
	return "unknown field: must be one of " + strings.Join(s.fields, ", ")
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
