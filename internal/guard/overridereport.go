package guard

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/policykind"
)

// reportLostOverrides turns the overrides that would no longer apply into findings of the
// reasons OverrideRemoved and OverrideEvaded: warnings for writers who are allowed to remove them, denials for all others.
func (ev *overrides) reportLostOverrides(may *authorizer) error {
	findings := make(map[lostOverrideKey]*lostOverride)
	for _, l := range slices.SortedFunc(maps.Values(ev.lost), compareLost) {
		reported, err := ev.permit(l, may)
		if err != nil {
			return err
		}
		if !reported {
			continue
		}
		l.key.substituteNames = ""
		if first := findings[l.key]; first != nil {
			first.paths = slices.Compact(slices.Sorted(slices.Values(slices.Concat(first.paths, l.paths))))
			continue
		}
		findings[l.key] = l
	}
	for _, l := range findings {
		ev.reportLostOverride(l)
	}
	for _, l := range ev.own {
		if l.reported {
			continue
		}
		if _, err := ev.permit(l, may); err != nil {
			return err
		}
		ev.reportLostOverride(l)
	}
	return nil
}

// compareLost orders losses by policy, rule and what may be one for the writer.
func compareLost(a, b *lostOverride) int {
	return cmp.Or(
		api.CompareRefs(a.ref(a.key.policy), b.ref(b.key.policy)),
		strings.Compare(a.key.rule, b.key.rule),
		strings.Compare(a.key.substituteNames, b.key.substituteNames),
		strings.Compare(a.key.unsure, b.key.unsure),
		cmp.Compare(btoi(a.key.neighbor), btoi(b.key.neighbor)),
	)
}

// permit sets whether the writer is allowed to remove an override that is lost, and
// returns whether it is to be reported: unless another policy of its namespace stands in
// for it. If its own policy gives it up in the same way, by an edit or with a new owner, that
// is certain, and no other policy counts.
func (ev *overrides) permit(l *lostOverride, may *authorizer) (reported bool, err error) {
	if l.permitted, err = may.mayOverride(l.ref(l.key.policy)); err != nil {
		return false, err
	}
	if own := ev.own[policyRuleOf(l)]; own != nil && own.key.code == l.key.code {
		l.key.unsure, l.key.neighbor, own.reported = "", false, true
		return true, nil
	}
	if l.permitted {
		return true, nil
	}
	covered, err := may.hasSubstitute(l)
	return !covered, err
}

func (ev *overrides) reportLostOverride(l *lostOverride) {
	policy, override := l.ref(l.key.policy), fmt.Sprintf("override %s of %s", l.key.rule, l.ref(l.key.policy))
	f := Finding{Rule: l.key.rule, Policy: policy}
	on := fmt.Sprintf(" on %s", api.Plural(len(l.paths), "path"))
	if len(l.paths) == 1 {
		on = " on " + endText(l.was)
	}
	edit := fmt.Sprintf("this write %s the %s", l.key.givenUp, override)
	switch edited := l.key.givenUp != "" && l.key.givenUp != givenUpRule; {
	case edited && l.was == nil:
		f.What = edit
	case edited:
		f.Short, f.What = edit+on, edit+", which applies"+on
	case l.was == nil:
		f.Short = override + " would be lost"
		f.What = fmt.Sprintf("%s: %s", f.Short, cmp.Or(l.key.givenUp, ev.ownerCause()))
	case l.key.code == api.ReasonOverrideRemoved && l.key.unboundReason == "":
		f.Short = override + " would no longer apply" + on
		f.What = fmt.Sprintf("%s: %s", f.Short, l.key.givenUp)
	default:
		f.Short = override + " would no longer apply" + on
		applies := ", which applies" + on
		if len(l.paths) > 1 {
			applies = "" // affectedText says on how many
		}
		f.What = fmt.Sprintf("%s would no longer be subject to %s%s: %s", affectedText(l), override, applies, ev.lossCause(l))
	}
	if l.request != nil && l.moved() {
		if q := l.request(); q != nil {
			f.Request, f.ServedBy = q.String(), servingText(l.is)
		}
	}
	if l.key.unsearched {
		f.What += "; so many matches compete for its requests that it is not known whether some move there"
	}
	ev.reportLoss(l, policy, f)
}

// reportLoss adds the finding about an override of a policy that is lost, with what is
// done about it.
func (ev *overrides) reportLoss(l *lostOverride, policy api.Ref, f Finding) {
	action := api.Deny
	switch {
	case l.permitted:
		action = api.Warn
		f.Advice = permittedAdvice
	case l.key.unsure != "":
		action = api.Warn
		f.What += "; this is a warning because it is unsure: " + l.key.unsure
		f.Short += "; unsure: " + l.key.unsure
	case l.key.neighbor:
		action = api.Warn
		f.What += "; the override is of another namespace and does not bind this write"
		f.Advice = fmt.Sprintf("ask the owner of %s", policy.Key())
		f.Short += "; it does not bind this write"
	default:
		f.Advice = fmt.Sprintf("ask the owner of %s, or check whether you are allowed to: %s", policy.Key(), ev.checkCommand(policy))
	}
	paths := len(l.paths)
	if action == api.Deny {
		paths = math.MaxInt // nothing changes
	}
	ev.blast.reported(l.key.kind, paths)
	ev.reportForKind(ev.before.Kind(l.key.kind), l.key.code, action, f)
}

// affectedText names what is no longer subject to an override.
func affectedText(l *lostOverride) string {
	if len(l.paths) > 1 {
		return api.Plural(len(l.paths), "path")
	}
	if l.was.Path.Route != nil {
		return l.was.Path.Route.Ref().String()
	}
	return endText(l.was)
}

// moved reports whether other rules or backends serve the requests of the first path
// after the write than before it.
func (l *lostOverride) moved() bool {
	after := l.is.Path.ID()
	after.Rule = ruleBefore(&l.was.Path, &l.is.Path)
	return l.was.Path.ID() != after
}

// lossCause says why an override would no longer apply.
func (ev *overrides) lossCause(l *lostOverride) string {
	object := ev.change.Object().Ref()
	switch {
	case l.key.unboundReason == effective.Unmatched && l.is.Path.Rule != l.was.Path.Rule:
		return fmt.Sprintf("%s %s, which may receive its requests", effective.Unmatched, endText(l.is))
	case l.key.unboundReason == effective.Unmatched || l.key.unboundReason == effective.HostnamesUnmatched || l.key.unboundReason == ruleRemoved:
		return l.key.unboundReason + " " + endText(l.is)
	case l.key.unboundReason != "":
		return l.key.unboundReason
	case ev.change.Owner != "":
		return ev.ownerCause()
	case ev.change.After == nil:
		return fmt.Sprintf("it depends on %s", object)
	case viaUnreadParent(l.is.Path):
		return ev.unreadParentsText(l.is)
	case l.is.Path.Route == nil && l.is.Path.Set != nil && l.is.Path.Gateway.Ref() != l.was.Path.Gateway.Ref():
		return fmt.Sprintf("it does not apply on %s", l.is.Path.Gateway.Ref()) // the listener is the same
	case isAwaited(l.is):
		return fmt.Sprintf("it does not apply on %s, which would take its requests", servingText(l.is))
	case !sameListener(l.is.Path, l.was.Path):
		return fmt.Sprintf("it does not apply on %s", entryText(l.is))
	case l.moved() || endText(l.was) != endText(l.is):
		return fmt.Sprintf("it does not apply on %s", endText(l.is))
	default:
		return ev.noLongerText(l)
	}
}

// noLongerText says why an override no longer applies on a path that is otherwise the same.
func (ev *overrides) noLongerText(l *lostOverride) string {
	now, _ := ev.after.Get(l.ref(l.key.policy)).(*policykind.Policy)
	switch {
	case now == nil:
		return "its policy is deleted"
	case now.Invalid != nil:
		return "its policy becomes invalid"
	case outcomeOf(l.is, l.key.policy) >= 0:
		return "its policy is read in another way"
	default:
		return "its policy is no longer attached there"
	}
}

// isAwaited reports whether a path stands for routes that may be attached later.
func isAwaited(e *effective.Effective) bool { return e.Path.Route != nil && e.Path.Route.Awaited }

// servingText names what serves the requests of a path.
func servingText(e *effective.Effective) string {
	if isAwaited(e) {
		return "what is attached to " + entryText(e)
	}
	return endText(e)
}

// hasSubstitute reports whether an equal override that is as high takes the place of one
// that is lost: one that the writer is not allowed to remove next.
func (a *authorizer) hasSubstitute(l *lostOverride) (bool, error) {
	for _, p := range l.substitutes {
		permitted, err := a.mayOverride(l.ref(p))
		if err != nil || !permitted {
			return !permitted && err == nil, err
		}
	}
	return false, nil
}
