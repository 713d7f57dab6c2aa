package ratelimit

import (
	"errors"
	"math"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"overrule.dev/overrule/internal/decode"
	"overrule.dev/overrule/internal/gateway"
)

// Validate validates a limit: decoded JSON of maps, lists, strings, booleans, int64 and
// float64. It returns the limit with its defaults, and all errors, with field paths below at:
// those of the schema, or if there are none the others. Regular expressions are charged to the
// budget. Paths, headers, query parameters and hostnames are those of Gateway API.
func (b *Budget) Validate(at *field.Path, name string, value any) (defaulted any, errs field.ErrorList) {
	limit, ok := value.(map[string]any)
	if !ok {
		return value, field.ErrorList{field.TypeInvalid(at, decode.TypeName(value), "must be an object, and not a list: remove the dash before its first field")}
	}
	limit = withDefaults(limit)
	v := validator{budget: b}
	if v.object(at, limitSchema(), limit); len(v.errs) == 0 {
		v.limit(at, Decode(name, limit))
	}
	for _, err := range v.errs {
		if text, ok := err.BadValue.(string); ok {
			err.BadValue = truncate(text)
		}
	}
	return limit, v.errs
}

// withDefaults returns a copy of a limit with the defaults of the RFC and of Gateway API
// set, as the API server stores it: a limit from a file then equals the stored one.
// The limit is not edited.
func withDefaults(limit map[string]any) map[string]any {
	limit = runtime.DeepCopyJSON(limit)
	for _, rate := range decode.Objects(limit["rates"]) {
		if rate["duration"] == nil {
			rate["duration"] = int64(1)
		}
	}
	for _, trigger := range decode.Objects(limit["triggers"]) {
		for _, match := range decode.Objects(trigger["matches"]) {
			gateway.DefaultHTTPMatch(match)
		}
	}
	return limit
}

// Decode returns a limit that Validate returned without errors, nil for any other value.
func Decode(name string, defaulted any) *Limit {
	fields, _ := defaulted.(map[string]any)
	out := new(Limit)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, out); err != nil {
		return nil
	}
	out.Name = name
	for _, t := range out.Triggers {
		for i := range t.Matches {
			t.Matches[i].Criteria = criteria(&t.Matches[i].HTTPRouteMatch)
		}
		for i, host := range t.Hostnames {
			t.Hostnames[i] = strings.ToLower(host)
		}
	}
	return out
}

func (v *validator) limit(at *field.Path, l *Limit) {
	// the name becomes a part of the descriptor
	const maxLimitNameLength = 253
	if strings.TrimSpace(l.Name) == "" || len(l.Name) > maxLimitNameLength || strings.ContainsFunc(l.Name, unicode.IsControl) {
		v.invalid(at, l.Name, "the name of a limit must have 1 to %d bytes, not all of them spaces, and no control characters", maxLimitNameLength)
	}
	for i, r := range l.Rates {
		if longest := math.MaxInt64 / secondsOf[r.Unit]; r.Duration > longest {
			v.invalid(at.Child("rates").Index(i).Child("duration"), r.Duration,
				"must be at most %d for unit %s, so that the seconds fit in 64 bits", longest, r.Unit)
		}
	}
	v.distinct(at.Child("counters"), l.Counters)
	for i := range l.When {
		v.condition(at.Child("when").Index(i), &l.When[i])
	}
	for i := range l.Triggers {
		v.trigger(at.Child("triggers").Index(i), &l.Triggers[i])
	}
}

func (v *validator) distinct(at *field.Path, all []string) {
	for i, text := range all {
		if slices.Contains(all[:i], text) {
			v.add(field.Duplicate(at.Index(i), text))
		}
	}
}

func (v *validator) condition(at *field.Path, c *Condition) {
	compares := c.Operator != Exists && c.Operator != NotExists
	switch value := at.Child("value"); {
	case compares && c.Value == nil:
		v.add(field.Required(value, "must be set for operator "+string(c.Operator)))
	case !compares && c.Value != nil:
		v.add(field.Forbidden(value, "must not be set for operator "+string(c.Operator)))
	case c.Operator == MatchesRE:
		v.pattern(value, *c.Value)
	}
}

func (v *validator) trigger(at *field.Path, t *Trigger) {
	if len(t.Matches) == 0 && len(t.Hostnames) == 0 {
		v.add(field.Required(at, "set matches or hostnames, or remove the trigger to bind to every rule"))
	}
	for i := range t.Matches {
		v.match(at.Child("matches").Index(i), &t.Matches[i])
	}
	v.distinct(at.Child("hostnames"), t.Hostnames)
}

// formats are those of the schema.
var formats = map[string]func(string) error{
	"counter":   CheckCounter,
	"condition": CheckCondition,
	"hostname": func(text string) error {
		_, err := netip.ParseAddr(text)
		if err == nil || len(validation.IsDNS1123Subdomain(strings.ToLower(strings.TrimPrefix(text, "*.")))) > 0 {
			return errors.New("must be a hostname such as games.example.com or *.example.com, not an IP address, and without a scheme, a port or a path")
		}
		return nil
	},
}

var (
	notInPath = regexp.MustCompile(`//|/\.\.?(?:/|$)|%2[fF]`)
	pathChars = regexp.MustCompile(`^/(?:[-A-Za-z0-9/._~!$&'()*+,;=:@]|%[0-9a-fA-F]{2})*$`)
)

func (v *validator) match(at *field.Path, m *Match) {
	if p := m.Path; p != nil && *p.Type == gatewayv1.PathMatchRegularExpression {
		v.pattern(at.Child("path", "value"), *p.Value)
	} else if p != nil && (!pathChars.MatchString(*p.Value) || notInPath.MatchString(*p.Value)) { // no rule of a route can have it
		v.invalid(at.Child("path", "value"), *p.Value, "must be an absolute path, percent-encoded, without //, /./, /../ and %%2F")
	}
	for i, h := range m.Headers {
		if *h.Type == gatewayv1.HeaderMatchRegularExpression {
			v.pattern(at.Child("headers").Index(i).Child("value"), h.Value)
		}
	}
	for i, q := range m.QueryParams {
		if *q.Type == gatewayv1.QueryParamMatchRegularExpression {
			v.pattern(at.Child("queryParams").Index(i).Child("value"), q.Value)
		}
	}
}
