//go:build long

package peers

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
)

// difference is a field of a route's or listener's settings that is not the same.
type difference struct {
	Listener, Route, Field string
	// Peer is the value by the implementation, Ours that by the effective policies.
	Peer, Ours string
}

// String returns the difference as text.
func (d difference) String() string {
	return fmt.Sprintf("%s %s %s:\n    peer %s\n    ours %s", d.Listener, d.Route, d.Field, d.Peer, d.Ours)
}

// compare compares the settings of a listener and its routes. It returns the number of
// fields that were compared.
func compare(l listener, peer, ours *translated) (fields int, out []difference) {
	add := func(route string, a, b object) {
		fieldsOfA, fieldsOfB := settingsOf(a), settingsOf(b)
		for _, field := range union(fieldsOfA, fieldsOfB) {
			fields++
			if a, b := fieldsOfA[field], fieldsOfB[field]; a != b {
				out = append(out, difference{l.String(), route, field, cmp.Or(a, "none"), cmp.Or(b, "none")})
			}
		}
	}
	add("", peer.settings, ours.settings)
	for _, name := range union(peer.routes, ours.routes) {
		add(name, peer.routes[name], ours.routes[name])
	}
	return fields, out
}

func union[V any](a, b map[string]V) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return slices.Sorted(maps.Keys(all))
}

// nested are the fields of a route that hold the settings of policies, each compared by
// its own fields.
var nested = []string{"traffic", "security", "envoyExtensions"}

// settingsOf returns the fields of a route or listener as text.
func settingsOf(o object) map[string]string {
	out := map[string]string{}
	for field, value := range o {
		if inner, ok := value.(object); ok && slices.Contains(nested, field) {
			for name, v := range inner {
				out[field+"."+name] = plain(v)
			}
			continue
		}
		if field != "metadata" && field != "name" {
			out[field] = plain(value)
		}
	}
	return out
}

var (
	// policyName matches the name of a policy in names that are derived from it.
	policyName = regexp.MustCompile(`(clienttrafficpolicy|backendtrafficpolicy|securitypolicy|envoyextensionpolicy)([/-])[^/]+/[^/"]+`)
	// authority matches that of a Service, whose copy is in another namespace.
	authority = regexp.MustCompile(`"authority":"([^".:]+)\.[^":]+:`)
	// ruleName matches the name of a rule of a rate limit.
	ruleName = regexp.MustCompile(`"[^/"]+/[^/"]+/rule/\d+"`)
)

// plain returns a value as text, without what is named for the policy that it is from.
func plain(v any) string {
	data, err := json.Marshal(withoutNames("", v))
	if err != nil {
		return err.Error()
	}
	text := policyName.ReplaceAllString(string(data), "$1$2")
	text = authority.ReplaceAllString(text, `"authority":"$1:`)
	return ruleName.ReplaceAllString(text, `"rule"`)
}

// withoutNames returns a copy of a value without metadata and names of the form
// namespace/name, and with lists whose order means
// nothing sorted.
func withoutNames(field string, v any) any {
	switch v := v.(type) {
	case object:
		out := make(object, len(v))
		for name, child := range v {
			generated, _ := child.(string)
			if name != "metadata" && name != "cookieSuffix" && (!strings.EqualFold(name, "name") || !strings.Contains(generated, "/")) {
				out[name] = withoutNames(name, child)
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = withoutNames("", v[i])
		}
		if field == "rules" {
			slices.SortFunc(out, func(a, b any) int { return strings.Compare(plain(a), plain(b)) })
		}
		return out
	default:
		return v
	}
}

// compareStates compares what the implementation and the outcomes say of the policies:
// whether a target is accepted, whether one is held by another policy, and whether it has
// no effect somewhere. Of policies that are merged, the implementation does not say what they
// lose.
func compareStates(theirs *translation, effective *api.EffectivePolicyList) (fields int, out []difference) {
	for _, l := range policyLists {
		states := theirs.policyStates(l.list)
		for i := range effective.Outcomes {
			o := &effective.Outcomes[i]
			name := o.Policy.Namespace + "/" + o.Policy.Name
			peer, known := states[name]
			if o.Policy.Kind != l.kind || !known {
				continue
			}
			var ours policyState
			for _, t := range o.Targets {
				ours.accepted = ours.accepted || t.Accepted
				ours.conflicted = ours.conflicted || t.Reason == api.Conflicted
			}
			ours.overridden = o.Paths.Overridden+o.Paths.PartiallyEnforced > 0
			for field, values := range map[string][2]bool{
				"accepted": {peer.accepted, ours.accepted}, "conflicted": {peer.conflicted, ours.conflicted},
				"overridden": {peer.overridden, ours.overridden},
			} {
				if peer.merged && field == "overridden" {
					continue
				}
				fields++
				if values[0] != values[1] {
					out = append(out, difference{"status", l.kind + " " + name, field, fmt.Sprint(values[0]), fmt.Sprint(values[1]) + " " + string(o.State)})
				}
			}
		}
	}
	return fields, out
}
