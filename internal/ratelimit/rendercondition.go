package ratelimit

import (
	"bytes"
	"encoding/json"
)

// conditionsOf returns the conditions of a limit as the service reads them: the one
// that ties it to its rules, the one on hostnames, and its own.
func conditionsOf(id string, l *Limit) []string {
	all := []Condition{{Selector: bindingDescriptor, Operator: Equals, Value: id}}
	if same := l.commonHostnames(); same != nil {
		all = append(all, hostCondition(same))
	}
	all = append(all, l.When...)
	out := make([]string, len(all))
	for i, c := range all {
		out[i] = c.String()
	}
	return out
}

// signs are how the service writes operators.
var operatorSymbols = map[Operator]string{
	Equals: "==", NotEquals: "!=", Exists: "exists", NotExists: "nexists",
	MatchesRE: "matches", Includes: "incl", NotInclude: "excl",
}

// String writes the condition as the service that counts reads it: `a.b != "x"`.
func (c Condition) String() string {
	text := c.Selector + " " + operatorSymbols[c.Operator]
	if c.Operator == Exists || c.Operator == NotExists {
		return text
	}
	return text + " " + quoteJSON(c.Value)
}

// quoted writes a text as JSON does, with nothing escaped for HTML.
func quoteJSON(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a text can be written
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}
