package ratelimit

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/editdistance"
)

// wellKnown is the data structure of the RFC's "Well-known selectors": Envoy's
// AttributeContext, the dynamic metadata of the external authorization (whose parts are known
// as Authorino's; others may have others), and Envoy's RateLimitRequest. What is in capitals
// stands for a name.
var wellKnown = strings.Fields(`
	context.request.http.path context.request.http.method context.request.http.host context.request.http.scheme
	context.request.http.query context.request.http.fragment context.request.http.size context.request.http.protocol
	context.request.http.body context.request.http.raw_body context.request.http.id context.request.http.headers.HEADER
	context.request.time context.request.time.seconds context.request.time.nanos
	context.destination.address context.destination.address.NAME context.destination.service
	context.destination.labels.LABEL context.destination.principal context.destination.certificate
	context.source.address context.source.address.NAME context.source.service
	context.source.labels.LABEL context.source.principal context.source.certificate
	auth.identity auth.identity.NAME auth.metadata auth.metadata.NAME auth.authorization auth.authorization.NAME
	auth.response auth.response.NAME auth.callbacks auth.callbacks.NAME
	ratelimit.domain ratelimit.hitsAddend ratelimit.descriptors.NAME`)

// names are the names in capitals in wellKnown. They may contain dots.
var names = map[string]*regexp.Regexp{
	"NAME":   regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`),
	"HEADER": regexp.MustCompile("^[A-Za-z0-9!#$%&'*+^_`|~-]+(\\.[A-Za-z0-9!#$%&'*+^_`|~-]+)*$"),
	"LABEL":  regexp.MustCompile(`^[A-Za-z0-9_-]+([./][A-Za-z0-9_-]+)*$`),
}

// triggerFields are the fields of a trigger that match an attribute of the request.
var triggerFields = map[string]string{
	"context.request.http.method":  "triggers[].matches[].method",
	"context.request.http.path":    "triggers[].matches[].path",
	"context.request.http.headers": "triggers[].matches[].headers",
	"context.request.http.query":   "triggers[].matches[].queryParams",
	"context.request.http.host":    "triggers[].hostnames",
}

func triggerField(selector string) string {
	for path, in := range triggerFields {
		if selector == path || strings.HasPrefix(selector, path+".") {
			return in
		}
	}
	return ""
}

// CheckCondition validates the selector of a condition. It may select what a counter
// may, except for attributes that belong into triggers.
func CheckCondition(selector string) error {
	if in := triggerField(selector); in != "" {
		return fmt.Errorf("is not allowed in conditions; use %s", in)
	}
	err := CheckCounter(selector)
	if err == nil {
		return nil
	}
	meant := suggestion(selector)
	if in := triggerField(meant); in != "" {
		return fmt.Errorf("unknown selector: if you mean %s, use %s", truncate(meant), in)
	}
	return err
}

// bindingDescriptor is the key of the descriptor that binds a rule to its limit.
const bindingDescriptor = "ratelimit.binding"

// CheckCounter validates the selector of a counter: a path in the well-known data
// structure that selects a value. The error suggests what to use instead.
func CheckCounter(selector string) error {
	if selector == bindingDescriptor || strings.HasPrefix(selector, bindingDescriptor+".") {
		return errors.New(bindingDescriptor + " is reserved; use another selector")
	}
	if slices.ContainsFunc(wellKnown, func(known string) bool { return selects(known, selector) }) {
		return nil
	}
	for _, known := range wellKnown {
		if strings.HasPrefix(known, selector+".") {
			return fmt.Errorf("must select a value; use one of its fields, such as %s", known)
		}
	}
	for part := range strings.SplitSeq(selector, ".") {
		if !names["NAME"].MatchString(part) {
			return fmt.Errorf("invalid selector: %q is not a valid segment; use a selector such as auth.identity.username", truncate(part))
		}
	}
	if meant := suggestion(selector); meant != "" {
		return fmt.Errorf("unknown selector: did you mean %s?", truncate(meant))
	}
	if strings.HasPrefix(selector, "auth.") {
		return nil // another part of the metadata
	}
	for at, _ := cutLast(selector); at != ""; at, _ = cutLast(at) {
		if fields := fieldsOf(at); len(fields) > 0 {
			return fmt.Errorf("unknown selector: %s has the fields %s", at, api.JoinNames(fields))
		}
	}
	return errors.New("unknown selector: must start with auth, context.destination, context.request.http, context.source or ratelimit")
}

// selects reports whether a selector is a known one.
func selects(known, selector string) bool {
	path, name := cutLast(known)
	below, ok := strings.CutPrefix(selector, path+".")
	if allowed := names[name]; allowed != nil {
		return ok && allowed.MatchString(below)
	}
	return selector == known
}

// cutLast cuts off the last segment of a selector.
func cutLast(selector string) (path, last string) {
	i := strings.LastIndex(selector, ".")
	return selector[:max(i, 0)], selector[i+1:]
}

// suggestion returns the selector that is probably meant by one with typos or without its
// first parts, "" if none is close. Of several it is the first of those with the fewest typos.
func suggestion(selector string) string {
	best, least, parts := "", 0, strings.Split(selector, ".")
	for _, known := range wellKnown {
		path := strings.Split(known, ".")
		if names[path[len(path)-1]] != nil {
			path = path[:len(path)-1]
		}
		for left := range path { // out
			n := len(path) - left
			if len(parts) < n {
				continue
			}
			edits, near := 0, true
			for i, name := range path[left:] {
				d, ok := editdistance.Typo(parts[i], name)
				edits, near = edits+d, near && ok
			}
			meant := strings.Join(slices.Concat(path, parts[n:]), ".")
			if near && (best == "" || edits < least) && selects(known, meant) {
				best, least = meant, edits
			}
		}
	}
	return best
}

// fieldsOf returns the names of the attributes below a path, sorted.
func fieldsOf(path string) []string {
	var out []string
	for _, known := range wellKnown {
		if below, ok := strings.CutPrefix(known, path+"."); ok {
			name, _, _ := strings.Cut(below, ".")
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
