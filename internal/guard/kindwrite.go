package guard

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// rereadKind is a kind whose stored policies the write reads in another way.
type rereadKind struct {
	*policykind.Kind
	how string // what would become of them, and why
}

// kindWrite is a write of how policies are read.
type kindWrite struct {
	*write

	blast  *blastRadius
	reread []rereadKind
}

// prepare prepares a change of how policies are read: a profile, or a definition of
// a policy kind. The paths of these policies are not compared: what the policies are after
// the write is not known before the API server serves them.
func (ev *kindWrite) prepare(ctx context.Context) (effective.Scope, error) {
	if p, ok := ev.change.After.(*policykind.Profile); ok {
		if err := ev.checkProfile(p); err != nil {
			return effective.Scope{}, err
		}
	}
	if len(ev.findings.withAction(api.Deny)) > 0 {
		return effective.Scope{}, nil
	}
	after, err := ev.before.WithKindChange(ev.change.Before, ev.change.After)
	if second, ok := errors.AsType[*policykind.DefinedError](err); ok {
		ev.report(api.ReasonNotRead, api.Deny, Finding{What: second.Error(), Advice: "define another kind, or delete the first definition before"})
		return effective.Scope{}, nil
	}
	if err != nil {
		return effective.Scope{}, fmt.Errorf("read the kinds after the write of %s: %w", ev.change.Object().Ref(), err)
	}
	ev.after = after
	for _, k := range ev.before.Kinds() {
		how := ev.rereads(k)
		if how != "" && ev.deletedWithOwner {
			how += ": " + ev.ownerCause()
		}
		if how != "" {
			ev.reread = append(ev.reread, rereadKind{k, how})
		}
	}
	ev.addDependent()
	if err := (constraintWrite{ev.write}).reportRemovedConstraints(ctx, after); err != nil {
		return effective.Scope{}, err
	}
	return effective.Scope{All: ev.removesObjects()}, nil
}

// addDependent adds the kinds that depend on those which are read in another way, or newly: their
// policies may be attached to other objects.
func (ev *kindWrite) addDependent() {
	var changed []api.PolicyKind
	for _, k := range ev.reread {
		changed = append(changed, k.Ref())
	}
	for _, k := range kindsOf(ev.after) {
		if ev.before.Kind(k.Ref()) == nil {
			changed = append(changed, k.Ref())
		}
	}
	for _, kind := range changed {
		for _, d := range slices.Concat(ev.before.DependentKinds(kind), ev.after.DependentKinds(kind)) {
			k := ev.before.Kind(d)
			if k != nil && !slices.ContainsFunc(ev.reread, func(r rereadKind) bool { return r.Ref() == d }) {
				ev.reread = append(ev.reread, rereadKind{k, fmt.Sprintf("would be attached in another way: they depend on policies of kind %s", kind)})
			}
		}
	}
}

// rereads returns what the write does to the stored policies of a kind: it changes how they
// are read or protected, or on which gateways they have an effect; "" if it does not.
func (ev *kindWrite) rereads(k *policykind.Kind) string {
	before, after := kindsOf(ev.before), kindsOf(ev.after)
	i := slices.IndexFunc(after, func(is *policykind.Kind) bool { return is.Ref() == k.Ref() })
	was, edited := ev.change.Before.(*policykind.Definition)
	is, stays := ev.change.After.(*policykind.Definition)
	switch {
	case i < 0:
		return "would no longer be read"
	case !k.ReadsLike(after[i]), edited && stays && was.Defines() == k.Ref() && !was.ReadsLike(is):
		return "would be read differently"
	}
	for o := range ev.before.Objects(gateway.KindOf(gateway.KindGatewayClass)) {
		c, ok := o.(*gateway.Class)
		if ok && !k.ReadBy(c.Controller) && policykind.KnownController(c.Controller, before) != policykind.KnownController(c.Controller, after) {
			return "would have an effect on other gateways, since the controller of " + c.Ref().String() + " becomes known, or unknown"
		}
	}
	return ""
}

// kindsOf returns the kinds of a view, listed or not.
func kindsOf(v *snapshot.View) []*policykind.Kind { return slices.Concat(v.Kinds(), v.Unlisted()) }

// removesObjects reports whether objects that are no policies are deleted with their
// definition.
func (ev *kindWrite) removesObjects() bool {
	d, ok := ev.change.Object().(*policykind.Definition)
	return ok && ev.before.Kind(d.Defines()) == nil && ev.after.Count(d.Defines()) < ev.before.Count(d.Defines())
}

// reportAll reports the kinds whose stored policies are read in another way, if one of
// the policies has overrides or a constraint holds for them: a warning for writers who are allowed to override all policies
// of the kind, a denial for all others.
func (ev *kindWrite) reportAll(may *authorizer) error {
	for _, k := range ev.reread {
		held, err := ev.count(k.Kind)
		if err != nil {
			return err
		}
		ev.blast.reported(k.Ref(), math.MaxInt) // they may change: that is only said above a limit
		var subject string
		switch {
		case hasOverridesOf(ev.before, k.Ref()):
			subject = fmt.Sprintf("policies of kind %s, whose overrides apply on %s,", k.Ref(), api.Plural(held, "path"))
		case ev.before.Count(k.Ref()) > 0 && len(ev.before.Constraints(k.Ref())) > 0:
			subject = fmt.Sprintf("policies of kind %s, for which constraints hold,", k.Ref())
		default:
			continue
		}
		all := api.Ref{Group: k.Group, Kind: k.Kind.Kind}
		permitted, err := may.mayOverride(all)
		if err != nil {
			return err
		}
		f, action := Finding{Advice: permittedAdvice}, api.Warn
		f.What = subject + " " + k.how
		if !permitted {
			action = api.Deny
			f.Advice = "ask a cluster administrator, or check whether you are allowed to override all of them: " + ev.checkCommand(all)
		}
		ev.reportForKind(k.Kind, api.ReasonOverrideEvaded, action, f)
	}
	return nil
}

// hasOverridesOf reports whether a policy of a kind has overrides, wherever they apply.
func hasOverridesOf(v *snapshot.View, kind api.PolicyKind) bool {
	for p := range v.Policies(kind) {
		if p.HasOverrides() {
			return true
		}
	}
	return false
}

// count counts the paths of a kind, each of which may change, and returns on how many
// of them overrides apply.
func (ev *kindWrite) count(k *policykind.Kind) (held int, err error) {
	var overrides []effective.Override
	err = ev.guard.Engine.Walk(ev.before, effective.Scope{All: true, Kinds: []api.PolicyKind{k.Ref()}}, false, ev.budget, func(e *effective.Effective) error {
		overrides = e.AppendOverrides(overrides[:0])
		held += min(len(overrides), 1)
		ev.blast.addImpact(effective.Pair{Before: e}, nil)
		return nil
	})
	if err != nil {
		return held, fmt.Errorf("count the paths of %s: %w", k.Ref(), err)
	}
	return held, nil
}

// checkProfile checks the write of a PolicyProfile: whether it is valid, whether another
// one defines its kind, and whether its addresses exist in the schema.
func (ev *kindWrite) checkProfile(p *policykind.Profile) error {
	kind, err := p.Compile()
	if err != nil {
		var wasInvalid error
		if was, ok := ev.change.Before.(*policykind.Profile); ok {
			_, wasInvalid = was.Compile()
		}
		ev.report(api.ReasonInvalid, newly(wasInvalid != nil), Finding{What: fmt.Sprintf("%s is invalid: %s", p.Ref(), strings.ReplaceAll(err.Error(), "\n", "; "))})
		return nil
	}
	for _, other := range ev.before.KindConfig().InForce() {
		if other.PolicyKind == kind.Ref() && other.Profile != "" && other.Profile != p.Name && !isOlder(ev.change, other) {
			ev.warn(api.ReasonConflicted, Finding{Advice: "delete one of the two"},
				"%s has no effect: PolicyProfile %s, which is older, is in force for %s", p.Ref(), other.Profile, kind.Ref())
		}
	}
	schema, err := ev.before.KindConfig().Schema(kind.Ref())
	if err != nil {
		return err
	}
	for _, lost := range kind.Check(schema) {
		ev.warn(api.ReasonNotRead, Finding{Advice: "fix the address or the kind's definition"}, "%s", lost)
	}
	return nil
}

// isOlder reports whether the profile that is written existed before the one that defines
// its kind: it is then in force, or was refused.
func isOlder(c Change, holder api.ProfileInForce) bool {
	if c.Before == nil {
		return false
	}
	for _, r := range holder.Refused {
		if r.Name == c.Before.Ref().Name {
			return r.Reason != api.Conflicted // fixed, it may be the older one
		}
	}
	return true
}
