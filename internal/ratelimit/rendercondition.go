package ratelimit

import (
	"bytes"
	"encoding/json"
)

// conditionsOf returns the conditions of a limit in the syntax of the rate limit service:
// one that binds it to its rules, one on hostnames, and its own.
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

// operatorSymbols are the operators in the syntax of the rate limit service.
var operatorSymbols = map[Operator]string{
	Equals: "==", NotEquals: "!=", Exists: "exists", NotExists: "nexists",
	MatchesRE: "matches", Includes: "incl", NotInclude: "excl",
}

// String returns the condition in the syntax of the rate limit service: `a.b != "x"`.
func (c Condition) String() string {
	text := c.Selector + " " + operatorSymbols[c.Operator]
	if c.Operator == Exists || c.Operator == NotExists {
		return text
	}
	return text + " " + quoteJSON(c.Value)
}

// quoteJSON returns a string as JSON, without escapes for HTML.
func quoteJSON(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string can always be encoded
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}
