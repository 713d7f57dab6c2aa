package ratelimit

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"overrule.dev/overrule/internal/editdistance"
)

// CheckCounter validates the selector of a counter: a path in the well-known data
// structure that selects a value. The error suggests what to use instead.
func CheckCounter(selector string) error {
	_, err := resolve(selector)
	return err
}

// CheckCondition validates the selector of a condition. It may select what a counter
// may, except for attributes that belong into triggers.
func CheckCondition(selector string) error {
	if in := triggerField(selector); in != "" {
		return fmt.Errorf("is not allowed in conditions; use %s", in)
	}
	suggestion, err := resolve(selector)
	if in := triggerField(suggestion); in != "" {
		return fmt.Errorf("unknown selector: if you mean %s, use %s", truncate(suggestion), in)
	}
	return err
}

// triggerFields are the fields of a trigger that match an attribute of the request.
var triggerFields = map[string]string{
	"method":  "triggers[].matches[].method",
	"path":    "triggers[].matches[].path",
	"headers": "triggers[].matches[].headers",
	"query":   "triggers[].matches[].queryParams",
	"host":    "triggers[].hostnames",
}

func triggerField(selector string) string {
	attribute, ok := strings.CutPrefix(selector, "context.request.http.")
	if !ok {
		return ""
	}
	attribute, _, _ = strings.Cut(attribute, ".")
	return triggerFields[attribute]
}

// bindingDescriptor is the key of the descriptor that binds a rule to its limit.
const bindingDescriptor = "ratelimit.binding"

// resolve validates a selector. suggestion is the selector that may be meant by an
// unknown one, empty if none is close.
func resolve(selector string) (suggestion string, err error) {
	if selector == bindingDescriptor || strings.HasPrefix(selector, bindingDescriptor+".") {
		return "", errors.New(bindingDescriptor + " is reserved; use another selector")
	}
	var segments []string
	var unknownIn *attribute // the one without the first unknown segment
	var unknown int
	p := wellKnown
	for rest, more := selector, true; more; {
		segment, allowed := rest, p.namePattern // the name of a header or of a label is one segment, including its dots
		more = false
		if allowed == nil {
			allowed = plain
			segment, rest, more = strings.Cut(rest, ".")
		}
		if strings.Contains(segment, `\`) {
			return "", errors.New(`invalid selector: dots cannot be escaped with \; use a selector such as auth.identity.username`)
		}
		if !allowed.MatchString(segment) {
			return "", fmt.Errorf("invalid selector: %q is not a valid segment; use a selector such as auth.identity.username", truncate(segment))
		}
		next := p.children[segment]
		if next == nil && p.namePattern == nil && unknownIn == nil {
			unknownIn, unknown = p, len(segments)
		}
		segments, p = append(segments, segment), cmp.Or(next, anyAttribute)
	}
	switch {
	case unknownIn != nil:
		return unknownIn.unknownSegment(segments, unknown)
	case !p.selectable:
		return "", fmt.Errorf("must select a value; use one of its fields, such as %s.%s", selector, p.example)
	default:
		return "", nil
	}
}

// unknownSegment returns the error for a segment that is not a known child, nil if
// any is allowed.
func (p *attribute) unknownSegment(segments []string, i int) (string, error) {
	if p.openEnded && editdistance.Closest(segments[i], sortedKeys(p.children)) == "" {
		return "", nil
	}
	if nearest, _ := wellKnown.nearest(segments, false); nearest != nil {
		suggestion := strings.Join(nearest, ".")
		return suggestion, fmt.Errorf("unknown selector: did you mean %s?", truncate(suggestion))
	}
	if i == 0 {
		return "", errors.New("unknown selector: must start with auth, context.destination, context.request.http, context.source or ratelimit")
	}
	at := strings.Join(segments[:i], ".")
	if len(p.children) == 0 {
		return "", fmt.Errorf("unknown selector: %s has no fields", at)
	}
	return "", fmt.Errorf("unknown selector: %s has the fields %s", at, joinAnd(sortedKeys(p.children)))
}
