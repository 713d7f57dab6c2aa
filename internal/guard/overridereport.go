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

// overrideReport reports the overrides that would no longer apply to a writer.
type overrideReport struct {
	*overrides

	may *authorizer
}

// reportAll turns them into findings of the reasons OverrideRemoved and OverrideEvaded:
// warnings for writers who are allowed to remove them, denials for all others.
func (ev *overrideReport) reportAll() error {
	findings := make(map[lostOverrideKey]*lostOverride)
	for _, l := range slices.SortedFunc(maps.Values(ev.lost), compareLost) {
		reported, err := ev.permit(l)
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
		if _, err := ev.permit(l); err != nil {
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
func (ev *overrideReport) permit(l *lostOverride) (reported bool, err error) {
	if l.permitted, err = ev.may.mayOverride(l.ref(l.key.policy)); err != nil {
		return false, err
	}
	if own := ev.own[policyRuleOf(l)]; own != nil && own.key.code == l.key.code {
		l.key.unsure, l.key.neighbor, own.reported = "", false, true
		return true, nil
	}
	if l.permitted {
		return true, nil
	}
	covered, err := ev.may.hasSubstitute(l)
	return !covered, err
}

func (ev *overrideReport) reportLostOverride(l *lostOverride) {
	policy, override := l.ref(l.key.policy), fmt.Sprintf("override %s of %s", l.key.rule, l.ref(l.key.policy))
	f := Finding{Rule: l.key.rule, Policy: policy}
	on := fmt.Sprintf(" on %s", api.Plural(len(l.paths), "path"))
	if len(l.paths) == 1 {
		on = " on " + endText(l.was)
	}
	var cause string
	edit := fmt.Sprintf("this write %s the %s", l.key.givenUp, override)
	switch edited := l.key.givenUp != "" && l.key.givenUp != givenUpRule; {
	case edited && l.was == nil:
		f.What = edit
	case edited:
		f.Short, f.What = edit+on, edit+", which applies"+on
	case l.was == nil:
		f.Short, cause = override+" would be lost", cmp.Or(l.key.givenUp, ev.ownerCause())
		f.What = f.Short + ": " + cause
	case l.key.code == api.ReasonOverrideRemoved && l.key.unboundReason == "":
		f.Short, cause = override+" would no longer apply"+on, l.key.givenUp
		f.What = f.Short + ": " + cause
	default:
		f.Short, cause = override+" would no longer apply"+on, ev.lossCause(l)
		applies := ", which applies" + on
		if len(l.paths) > 1 {
			applies = "" // affectedText says on how many
		}
		f.What = fmt.Sprintf("%s would no longer be subject to %s%s: %s", affectedText(l), override, applies, cause)
	}
	if l.request != nil && l.moved() {
		f.Request, f.ServedBy = l.request().String(), servingText(l.is)
	}
	if l.key.unsearched {
		f.What += "; so many matches compete for its requests that it is not known whether some move there"
	}
	ev.reportLoss(l, policy, f, cause)
}

// reportLoss adds the finding about an override of a policy that is lost, with what is
// done about it. The cause is "" where the finding says it.
func (ev *overrideReport) reportLoss(l *lostOverride, policy api.Ref, f Finding, cause string) {
	action, note := api.Deny, ""
	switch {
	case l.permitted:
		action = api.Warn
		f.Advice = permittedAdvice
	case l.key.unsure != "":
		action = api.Warn
		f.What += "; this is a warning because it is unsure: " + l.key.unsure
		note = "; unsure: " + l.key.unsure
	case l.key.neighbor:
		action = api.Warn
		f.What += "; the override is of another namespace and does not bind this write"
		f.Advice = fmt.Sprintf("ask the owner of %s", policy.Key())
		note = "; it does not bind this write"
	default:
		f.Advice = ev.attachAdvice(l, policy) + fmt.Sprintf("ask the owner of %s, or check whether you are allowed to: %s", policy.Key(), ev.checkCommand(policy))
	}
	if cause != "" {
		cause = ": " + cause
	}
	f.Short = shortText(f.Short+cause+note, f.Short+note)
	paths := len(l.paths)
	if action == api.Deny {
		paths = math.MaxInt // nothing changes
	}
	ev.blast.reported(l.key.kind, paths)
	ev.reportForKind(ev.before.Kind(l.key.kind), l.key.code, action, f)
}

// attachAdvice says to what a policy has to be attached too where other writes are made with this
// one, such as one that creates another gateway for its routes; "" if it may not, or is.
func (ev *overrideReport) attachAdvice(l *lostOverride, policy api.Ref) string {
	if ev.change.End == nil || l.was == nil {
		return ""
	}
	level := l.was.Level(l.key.policy)
	at := l.is.Path.Element(level)
	if at == l.was.Path.Element(level) || l.was.Kind.Targets.Namespaces == api.NamespacesOwn && at.Namespace != policy.Namespace {
		return ""
	}
	return fmt.Sprintf("to keep it, attach %s to %s in the same change, or ", policy.Key(), at)
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
func (ev *overrideReport) lossCause(l *lostOverride) string {
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
func (ev *overrideReport) noLongerText(l *lostOverride) string {
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
			return err == nil, err
		}
	}
	return false, nil
}
