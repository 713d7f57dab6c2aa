package guard

import (
	"fmt"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cel"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/explain"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
)

// policyCheck checks a policy by itself.
type policyCheck struct{ *write }

// check checks the policy that is written and its targets, before any path is
// evaluated.
func (ev policyCheck) check() {
	if ev.policy.Invalid != nil {
		ev.report(api.ReasonInvalid, newly(ev.old != nil && ev.old.Invalid != nil), Finding{What: unreadableText(ev.policy)})
		return
	}
	for _, t := range effective.Targets(ev.after, ev.policy) {
		ev.checkTarget(t)
	}
	ev.reportDisplaced()
	ev.reportUnread()
}

func unreadableText(p *policykind.Policy) string {
	return fmt.Sprintf("%s is invalid and has no effect: %v", p.Ref(), p.Invalid)
}

func (ev policyCheck) checkTarget(t api.Target) {
	what := effective.Describe(ev.after, ev.policy, t)
	switch t.Reason {
	case api.TargetNotFound:
		if t.AttachedBy != "" && ev.policy.Kind.NamesNamespaces() {
			return // the reference is another's, and no grant lets it in
		}
		ev.warn(api.ReasonTargetNotFound, Finding{Advice: ev.targetAdvice(t), Field: ev.targetField(t)}, "the policy has no effect on its target: %s", what)
	case api.Conflicted:
		ev.report(api.ReasonConflicted, newly(ev.wasConflicted(t)), Finding{
			Policy: *t.By, What: what, Field: ev.targetField(t),
			Advice: conflictAdvice(ev.policy, *t.By),
		})
	default: // accepted
		if why := effective.NoLevelReason(ev.policy, t); why != "" {
			ev.warn(api.ReasonNotRead, Finding{}, "%s", why)
		}
	}
}

// conflictAdvice says what to do about a policy that conflicts with another one.
func conflictAdvice(p *policykind.Policy, by api.Ref) string {
	return fmt.Sprintf("policies of kind %s do not merge on one target: edit %s or choose another target", p.Kind.Kind, by)
}

// newConflicts returns the policies that the write keeps off an object, because of others on it.
func (ev *write) newConflicts(object api.Ref) []effective.Conflict {
	is := effective.Conflicts(ev.after, object)
	if len(is) == 0 {
		return nil
	}
	was := effective.Conflicts(ev.before, object)
	return slices.DeleteFunc(is, func(c effective.Conflict) bool {
		return slices.ContainsFunc(was, func(o effective.Conflict) bool {
			return o.Policy.Ref() == c.Policy.Ref() && o.Target.SamePlace(c.Target)
		})
	})
}

// targetAdvice says what to do about a target that does not exist.
func (ev policyCheck) targetAdvice(t api.Target) string {
	sections := "" // as secret as those of a parent
	if ev.reads(t.Target.Namespace) {
		sections = effective.ListSections(ev.after.Get(t.Target))
	}
	switch hint := effective.TargetHint(ev.after, t, ev.guard.ReadsAll); {
	case t.Refused != "":
		return "choose another target, or move the policy to a namespace that is allowed to target this one"
	case t.Selector != "":
		return "check the selector and the labels of the objects"
	case hint != "":
		return hint
	case sections != "" && t.Section != "":
		return sections
	default:
		return "check the target's kind, name and section, or create it"
	}
}

func (ev policyCheck) wasConflicted(t api.Target) bool {
	return ev.old != nil && slices.ContainsFunc(effective.Targets(ev.before, ev.old), func(o api.Target) bool { return sameTarget(o, t) && o.Reason == api.Conflicted })
}

func sameTarget(a, b api.Target) bool {
	return a.Target == b.Target && a.Section == b.Section && a.Port == b.Port
}

// reportDisplaced reports which policies lose a target to the one that is written.
func (ev policyCheck) reportDisplaced() {
	if !ev.policy.Kind.MayConflict() {
		return
	}
	for _, t := range ev.after.Targets(ev.policy) {
		for _, c := range ev.newConflicts(t.Ref) {
			if c.Policy.Ref() != ev.policy.Ref() && c.Target.SamePlace(t) {
				ev.warn(api.ReasonConflicted, Finding{Policy: c.Policy.Ref(), Field: ev.policy.TargetField(t.Ref, t.Section, t.Port)},
					"%s would no longer apply to %s: this policy is %s and takes precedence", c.Policy.Ref(), t, effective.OlderText(c.Policy, ev.policy))
			}
		}
	}
}

// reportUnread reports what of the policy that is written is not read.
func (ev policyCheck) reportUnread() {
	if ev.policy.Unread != "" && ev.policy.Kind.Source != policykind.Label { // with a label and no target it is no policy
		ev.warn(api.ReasonNotRead, Finding{}, "the paths of %s are unknown: %s", ev.policy.Ref(), ev.policy.Unread)
	}
	for _, gate := range ev.policy.IgnoredGates {
		ev.warn(api.ReasonNotRead, Finding{Rule: gate, Advice: "move it into the block"},
			"%s next to defaults or overrides has no effect without other rules next to them", gate)
	}
}

// checkUnset reports rules that the policy that is written newly unsets although an
// override of a higher policy sets them.
func (ev policyCheck) checkUnset(p effective.Pair, o *merge.Outcome) {
	if len(o.Policy.Unset) == 0 {
		return
	}
	var was map[unsetRule]bool
	if ev.old != nil && p.Before != nil {
		was = unsetRules(p.Before, &ev.old.Policy)
	}
	for u := range unsetRules(p.After, o.Policy) {
		ev.report(api.ReasonUnsetOverride, newly(was[u]), Finding{
			Rule: u.rule, Policy: u.by,
			What:   fmt.Sprintf("unset %s has no effect: the overrides of %s set it", u.rule, u.by),
			Advice: fmt.Sprintf("remove it from the list, or ask the owner of %s", u.by.Key()),
		})
	}
}

type unsetRule struct {
	rule string
	by   api.Ref
}

// unsetRules returns the rules that p unsets and an override above it sets,
// on a path that p is on.
func unsetRules(e *effective.Effective, p *merge.Policy) map[unsetRule]bool {
	out := make(map[unsetRule]bool)
	unset := merge.NewNames(p.Unset)
	for i := range max(outcomeOf(e, p), 0) { // those behind it are lower
		q := &e.Outcomes[i]
		for _, b := range q.Blocks() {
			if !q.AppliedAs(b.Block, merge.Overrides) {
				continue
			}
			for _, r := range b.Rules {
				if unset.Match(r.Key) {
					out[unsetRule{r.Key.String(), e.Ref(q.Policy)}] = true
				}
			}
		}
	}
	return out
}

// reportSkippedConditions reports conditions that could not be evaluated, or that name a
// key that the policies below left out: those of the policy that is written always, those
// of others where the write causes that.
func (ev policyCheck) reportSkippedConditions(p effective.Pair) {
	for _, n := range p.After.Notes {
		own := ev.policy != nil && n.Policy == &ev.policy.Policy
		if !own && notedBefore(p.Before, n) {
			continue
		}
		ev.warn(api.ReasonConditionSkipped, Finding{Policy: p.After.Ref(n.Policy)}, "%s (when: %s)", explain.NoteText(p.After, ev.redactNote(n)), n.When)
	}
}

// redactNote returns a note without what depends on values that the condition reads: they
// are of policies that its writer may not be allowed to read, or the reader is not allowed
// to read the policies above.
func (ev policyCheck) redactNote(n merge.Note) merge.Note {
	if ev.guard.ReadsAll {
		return n
	}
	if n.Answer.Err != nil {
		n.Answer.Err = cel.WithoutValues(n.When.String(), n.Answer.Err)
	} else if !cel.NamesKeys(n.When.String()) {
		n.Answer.Missing = "a key"
	}
	return n
}

// notedBefore reports whether the path had the same note before the write.
func notedBefore(before *effective.Effective, n merge.Note) bool {
	return before != nil && slices.ContainsFunc(before.Notes, func(o merge.Note) bool {
		return o.Policy.Same(n.Policy) && o.Block == n.Block && o.Answer.Missing == n.Answer.Missing && (o.Answer.Err == nil) == (n.Answer.Err == nil)
	})
}
