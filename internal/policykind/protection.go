package policykind

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	api "overrule.dev/overrule/api/v1alpha1"
)

// protecting are the reasons whose denials keep overrides in force: the last two
// because what Overrule cannot read, or a gateway cannot use, may take any of them
// out of force. What the other reasons deny leaves every override as it is.
var protectingReasons = []api.ReasonCode{
	api.ReasonOverrideRemoved, api.ReasonOverrideEvaded, api.ReasonOverrideWeakened,
	api.ReasonInvalid, api.ReasonEffectiveInvalid,
}

// fromMild are the actions from the mildest on.
var actionsBySeverity = []api.Action{api.Audit, api.Warn, api.Deny}

// apart are the fields of a profile in which Loosens tells a stricter value from
// a milder one, and those that have no part in the protection of overrides.
var comparedSeparately = []string{"Group", "Kind", "Actions", "Gates", "Alternatives", "BlastRadius"}

// Loosens returns in what respects overrides are less protected if their kind is
// read by now in place of k, or may be: nil if everything that is denied by k is
// denied by now.
//
// A stricter action, another gate and another group of alternatives at the end of
// their list loosen nothing. Any other difference decides which policies are on a
// path, which of them is higher, or what their rules are: it may let a policy of
// tomorrow take an override out of force although none does today, so it counts.
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
			out = append(out, fmt.Sprintf("gates would be without %s", gate))
		}
	}
	if !hasPrefix(now.Alternatives, k.Alternatives) { // a rule belongs to the first group that has it
		out = append(out, fmt.Sprintf("alternatives would not begin with %s", strings.Join(k.Alternatives, ", ")))
	}
	if fields := k.differingFields(now); len(fields) > 0 {
		out = append(out, fmt.Sprintf("policies would be read in another way (%s)", strings.Join(fields, ", ")))
	}
	return out
}

func hasPrefix(list, start []string) bool {
	return len(list) >= len(start) && slices.Equal(list[:len(start)], start)
}

// readsOtherwise returns the names of the other fields in which the profiles of
// two kinds differ.
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
