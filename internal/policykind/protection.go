package policykind

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	api "overrule.dev/overrule/api/v1alpha1"
)

// protectingReasons are the reasons whose denials keep overrides in force. The last
// two are among them because a policy that is invalid, or that a gateway rejects, may
// take any override out of force. Writes that other reasons deny do not affect
// overrides.
var protectingReasons = []api.ReasonCode{
	api.ReasonOverrideRemoved, api.ReasonOverrideEvaded, api.ReasonOverrideWeakened,
	api.ReasonInvalid, api.ReasonEffectiveInvalid,
}

// actionsBySeverity are the actions, the mildest first.
var actionsBySeverity = []api.Action{api.Audit, api.Warn, api.Deny}

// comparedSeparately are the fields of a profile that WeakenedBy compares by
// strictness, and those that do not affect the protection of overrides.
var comparedSeparately = []string{"Group", "Kind", "Controllers", "Actions", "Gates", "Alternatives", "Protection", "RouteOverridesBind", "BlastRadius"}

// WeakenedBy returns in what respects overrides are less protected, or may be, if
// their kind uses the profile of now instead of that of k. It is nil if now denies
// everything that k denies, except for what RouteOverridesWeakenedBy adds.
//
// A stricter action, an additional controller, an additional gate and an additional group of alternatives at
// the end of the list do not weaken the protection. Any other difference decides
// which policies are on a path, which of them is higher, or what their rules are:
// even if no policy takes an override out of force today, a later one may.
func (k *Kind) WeakenedBy(now *Kind) []string {
	var out []string
	for _, code := range protectingReasons {
		was, is := k.Action(code, api.Deny), now.Action(code, api.Deny)
		if slices.Index(actionsBySeverity, is) < slices.Index(actionsBySeverity, was) {
			out = append(out, fmt.Sprintf("the action of %s would be %s", code, is))
		}
	}
	for _, gate := range k.Gates {
		if !slices.Contains(now.Gates, gate) {
			out = append(out, fmt.Sprintf("gate %s would be removed", gate))
		}
	}
	if !hasPrefix(now.Alternatives, k.Alternatives) { // a rule belongs to the first group that has it
		out = append(out, fmt.Sprintf("alternatives would not begin with %s", strings.Join(k.Alternatives, ", ")))
	}
	if len(now.Controllers) > 0 {
		for _, name := range k.Controllers {
			if !slices.Contains(now.Controllers, name) {
				out = append(out, fmt.Sprintf("controller %s would be removed", name))
			}
		}
		if len(k.Controllers) == 0 {
			out = append(out, "policies would only be read by gateways of "+strings.Join(now.Controllers, ", "))
		}
	}
	if fields := k.differingFields(now); len(fields) > 0 {
		out = append(out, fmt.Sprintf("policies would be read differently (%s)", strings.Join(fields, ", ")))
	}
	return out
}

// RouteOverridesWeakenedBy is WeakenedBy for the overrides that are attached to a
// route, its namespace, a rule or a backend.
func (k *Kind) RouteOverridesWeakenedBy(now *Kind) []string {
	out := k.WeakenedBy(now)
	if k.BindsAllNamespaces() && !now.BindsAllNamespaces() {
		out = append(out, "it would not bind writes of routes in other namespaces")
	}
	return out
}

func hasPrefix(list, start []string) bool {
	return len(list) >= len(start) && slices.Equal(list[:len(start)], start)
}

// differingFields returns the names of the other fields in which the profiles of two
// kinds differ.
func (k *Kind) differingFields(now *Kind) []string {
	was, is := reflect.ValueOf(k.PolicyProfileSpec), reflect.ValueOf(now.PolicyProfileSpec)
	var out []string
	for _, f := range reflect.VisibleFields(was.Type()) {
		a, b := was.FieldByIndex(f.Index).Interface(), is.FieldByIndex(f.Index).Interface()
		if !slices.Contains(comparedSeparately, f.Name) && !equality.Semantic.DeepEqual(a, b) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			out = append(out, name)
		}
	}
	return out
}
