package manifest

import (
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/editdistance"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
)

// targetFields are the fields of policies that refer to their targets.
var targetFields = []string{"targetRef", "targetRefs", "targetSelectors"}

// NotRead returns why an object was probably meant to have an effect, though its kind is
// not read: it has the target references of a policy, or its kind resembles one that is
// read. It returns "" for any other object.
func (k *Kinds) NotRead(o *Object) (why, advice string) {
	if k.Reads(o.Kind) || k.notServed(o.Kind) || o.Kind == KindCRD {
		return "", ""
	}
	if meant := k.resembled(o.Kind); meant != (api.PolicyKind{}) {
		return fmt.Sprintf("kind %s is not known, so the object has no effect here", o.Kind), fmt.Sprintf("did you mean %s?", meant)
	}
	spec, _ := o.content["spec"].(map[string]any)
	if i := slices.IndexFunc(targetFields, func(name string) bool { return hasTarget(spec[name]) }); i >= 0 {
		return fmt.Sprintf("policies of kind %s are not read, so effective policies are without them (it has spec.%s)", o.Kind, targetFields[i]),
			k.profileAdvice(o.Kind)
	}
	return "", ""
}

// profileAdvice says what to do about a policy kind that is not read: one of the same name in
// another group may be meant.
func (k *Kinds) profileAdvice(unknown api.PolicyKind) string {
	const profile = "create a PolicyProfile for the kind if it is a policy kind"
	var same []string
	for _, known := range k.readKinds() {
		if known.Kind == unknown.Kind && k.DefinitionOf(unknown) == nil {
			same = append(same, known.String())
		}
	}
	if len(same) == 0 {
		return profile
	}
	return fmt.Sprintf("if %s is meant, correct apiVersion; otherwise %s", strings.Join(same, " or "), profile)
}

// hasTarget reports whether a value is a target reference of a policy, or a list with one.
// Those of scalers, which name a workload, have an apiVersion in place of a group.
func hasTarget(value any) bool {
	if list, ok := value.([]any); ok {
		return slices.ContainsFunc(list, hasTarget)
	}
	reference, _ := value.(map[string]any)
	return reference["kind"] != nil && reference["apiVersion"] == nil
}

// resembled returns the kind that is read and was probably meant by one that is not, zero
// if there is none. A kind with a definition is not misspelled.
func (k *Kinds) resembled(unknown api.PolicyKind) (meant api.PolicyKind) {
	if k.DefinitionOf(unknown) != nil {
		return meant
	}
	least := 0
	for _, known := range k.readKinds() {
		kind, near := editdistance.Typo(singular(unknown.Kind), known.Kind)
		group, nearGroup := editdistance.Typo(unknown.Group, known.Group)
		if near && nearGroup && (meant == api.PolicyKind{} || kind+group < least) {
			meant, least = known, kind+group
		}
	}
	return meant
}

// singular returns a kind for a plural that ends in ies, which is more than two letters away.
func singular(kind string) string {
	if stem, plural := strings.CutSuffix(kind, "ies"); plural {
		return stem + "y"
	}
	return kind
}

// readKinds returns the kinds of objects that are read.
func (k *Kinds) readKinds() []api.PolicyKind {
	return append(k.Objects(), policykind.KindProfile, constraint.Kind, constraint.ClusterKind)
}

// Objects returns the kinds of objects that paths consist of or depend on, and the policy kinds.
func (k *Kinds) Objects() []api.PolicyKind {
	out := []api.PolicyKind{{Kind: gateway.KindNamespace}, {Kind: gateway.KindService}}
	for _, kind := range gateway.GatewayKinds {
		out = append(out, gateway.KindOf(kind))
	}
	for _, kind := range k.All() {
		out = append(out, kind.Ref())
	}
	return out
}
