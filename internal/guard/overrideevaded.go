package guard

import (
	"fmt"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/guard/limits"
)

// reportLostOverrides turns the overrides that would no longer apply into findings of the
// reasons OverrideRemoved and OverrideEvaded:
// warnings for writers who are allowed to remove them, denials for all others.
func (ev *evaluation) reportLostOverrides(may *authorizer) error {
	findings := make(map[lostOverrideKey]*lostOverride)
	for _, l := range ev.overrides.sortedLosses() {
		mine, err := may.mayOverride(l.ref(l.key.policy))
		if err != nil {
			return err
		}
		covered := false
		if !mine {
			if covered, err = may.hasSubstitute(l); err != nil {
				return err
			}
		}
		if covered {
			continue
		}
		l.permitted, l.key.substituteNames = mine, ""
		if first := findings[l.key]; first != nil {
			first.paths = slices.Compact(slices.Sorted(slices.Values(slices.Concat(first.paths, l.paths))))
			continue
		}
		findings[l.key] = l
	}
	for _, l := range findings {
		ev.reportLostOverride(l)
	}
	return ev.reportWeakenings(may)
}

func (ev *evaluation) reportLostOverride(l *lostOverride) {
	policy := l.ref(l.key.policy)
	f := Finding{Rule: l.key.rule, Policy: &policy}
	on := fmt.Sprintf("on %s", plural(len(l.paths), "path"))
	if len(l.paths) == 1 {
		on = "on " + endText(l.was)
	}
	f.Short = fmt.Sprintf("override %s of %s would no longer apply %s", l.key.rule, policy, on)
	switch {
	case l.key.lessProtected != "":
		f.What = fmt.Sprintf("override %s of %s, which applies %s, would be less protected: %s", l.key.rule, policy, on, l.key.lessProtected)
		f.Short = fmt.Sprintf("override %s of %s would be less protected %s", l.key.rule, policy, on)
	case l.key.code == api.ReasonOverrideRemoved && l.key.unboundReason == "":
		f.What = f.Short
	default:
		f.What = fmt.Sprintf("%s would no longer be subject to override %s of %s, which applies %s: %s", affectedText(l), l.key.rule, policy, on, ev.lossCause(l))
	}
	if l.request != nil && l.moved() {
		f.Request, f.ServedBy = l.request.String(), endText(l.is)
	}
	if l.key.unsearched {
		f.What += "; so many matches compete for its requests that it is not known whether some move there"
	}
	action := api.Deny
	switch {
	case l.permitted:
		action = api.Warn
		f.Advice = permittedAdvice
	case l.key.unsure != "":
		action = api.Warn
		f.Advice = fmt.Sprintf("this is a warning because it is unsure: %s", l.key.unsure)
		f.Short += "; unsure: " + l.key.unsure
	case l.key.neighbor:
		action = api.Warn
		f.Advice = fmt.Sprintf("the override is of another namespace and does not bind this write; ask the owner of %s", policy.Key())
		f.Short += "; it does not bind this write"
	default:
		f.Advice = fmt.Sprintf("ask the owner of %s, or check whether you are allowed to: %s", policy.Key(), ev.checkCommand(policy))
	}
	ev.reportForKind(l.was.Kind, l.key.code, action, f)
}

// affectedText names what is no longer subject to an override.
func affectedText(l *lostOverride) string {
	if len(l.paths) > 1 {
		return plural(len(l.paths), "path")
	}
	if l.was.Path.Route != nil {
		return l.was.Path.Route.Ref().String()
	}
	return endText(l.was)
}

// moved reports whether other rules or backends serve the requests of the first path
// after the write than before it.
func (l *lostOverride) moved() bool {
	was, is := &l.was.Path, &l.is.Path
	if was.Route == nil || is.Route == nil || was.Route == is.Route || was.Route.Ref() != is.Route.Ref() {
		return was.ID() != is.ID()
	}
	rule := is.Rule
	if rule >= 0 {
		rule = gateway.MatchRules(was.Route, is.Route)[rule]
	}
	before, after := was.ID(), is.ID()
	after.Rule = rule
	return before != after
}

// lossCause says why an override would no longer apply.
func (ev *evaluation) lossCause(l *lostOverride) string {
	object := ev.change.Object().Ref()
	switch {
	case l.key.unboundReason == limits.Unmatched && l.is.Path.Rule != l.was.Path.Rule:
		return fmt.Sprintf("%s %s, which may receive its requests", limits.Unmatched, endText(l.is))
	case l.key.unboundReason == limits.Unmatched || l.key.unboundReason == limits.HostnamesUnmatched || l.key.unboundReason == limits.RuleRemoved:
		return l.key.unboundReason + " " + endText(l.is)
	case l.key.unboundReason != "":
		return l.key.unboundReason
	case l.version != "":
		return fmt.Sprintf("it is dropped when written in version %s, which %s adds or changes", l.version, object)
	case ev.change.Owner != "":
		return fmt.Sprintf("%s would be deleted with %s, its new owner", object, ev.change.Owner)
	case ev.change.After == nil:
		return fmt.Sprintf("it depends on %s", object)
	case viaUnreadParent(l.is.Path):
		return ev.unreadParentsText(l.is)
	case l.is.Path.Route == nil && l.is.Path.Set != nil && l.is.Path.Gateway.Ref() != l.was.Path.Gateway.Ref():
		return fmt.Sprintf("it does not apply on %s", l.is.Path.Gateway.Ref()) // the listener is the same
	case !sameListener(l.is.Path, l.was.Path):
		return fmt.Sprintf("it does not apply on %s", entryText(l.is))
	case l.moved() || endText(l.was) != endText(l.is):
		return fmt.Sprintf("it does not apply on %s", endText(l.is))
	default:
		return "it does not apply after this write"
	}
}
