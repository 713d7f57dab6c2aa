package ratelimit

import (
	"maps"
	"slices"
)

// shape is what an object of a limit may hold.
type objectFields struct {
	// name is what such an object is called: "a limit".
	name   string
	fields []string
	// instead says what to write for fields that people know from elsewhere:
	// from the version before, which the RFC compares itself with, from those
	// after it, and from a part of the limit where they do belong.
	hints map[string]string
}

var (
	limitFields = objectFields{"a limit", []string{"rates", "counters", "when", "triggers"}, map[string]string{
		"matches":        "it stands under triggers: write triggers: [{matches: …}]",
		"hostnames":      "it stands under triggers: write triggers: [{hostnames: …}]",
		"routeSelectors": "write triggers",
		"rules":          "write triggers",
		"conditions":     "write when, with selector, operator and value",
		"variables":      "write counters",
		"configurations": "take it away: it is made of when and counters",
		"limit":          "it stands under rates: write rates: [{limit: …, unit: …}]",
		"duration":       "it stands under rates: write rates: [{limit: …, duration: …, unit: …}]",
		"unit":           "it stands under rates: write rates: [{limit: …, unit: …}]",
		"maxValue":       "write rates: [{limit: …, unit: …}]",
		"seconds":        "write rates: [{limit: …, duration: …, unit: second}]",
	}}
	rateFields = objectFields{"a rate", []string{"limit", "duration", "unit"}, map[string]string{
		"maxValue": "write limit",
		"seconds":  "write duration, and unit: second",
		"window":   "write duration and unit",
	}}
	conditionFields = objectFields{"a condition", []string{"selector", "operator", "value"}, map[string]string{
		"predicate": "write selector, operator and value",
	}}
	triggerObjectFields = objectFields{"a trigger", []string{"matches", "hostnames"}, map[string]string{
		"path":        "it stands under matches: write matches: [{path: …}]",
		"method":      "it stands under matches: write matches: [{method: …}]",
		"headers":     "it stands under matches: write matches: [{headers: …}]",
		"queryParams": "it stands under matches: write matches: [{queryParams: …}]",
		"hosts":       "write hostnames",
	}}
	matchFields = objectFields{"a match", []string{"path", "method", "headers", "queryParams"}, map[string]string{
		"hostnames": "it stands beside matches, in the trigger",
	}}
	pathFields  = objectFields{"a path", []string{"type", "value"}, nil}
	valueFields = objectFields{"a header or query parameter", []string{"type", "name", "value"}, nil}
)

// unknown says what to write for a field that is not one of these.
func (s objectFields) unknownFieldDetail(name string) string {
	if instead, ok := s.hints[name]; ok {
		return "unknown field: " + instead
	}
	if meant := closestWord(name, s.fields); meant != "" {
		return "unknown field: did you mean " + meant + "?"
	}
	return "unknown field: " + s.name + " has " + joinAnd(s.fields)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
