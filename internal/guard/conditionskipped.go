package guard

import (
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cel"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/merge"
)

// reportSkippedConditions reports conditions that could not be evaluated, or that name a
// key that the policies below left out: those of the policy that is written always, those
// of others where the write causes that.
func (ev *evaluation) reportSkippedConditions(p effective.Pair) {
	for _, n := range p.After.Notes {
		own := ev.policy != nil && n.Policy == &ev.policy.Policy
		if !own && notedBefore(p.Before, n) {
			continue
		}
		by := p.After.Ref(n.Policy)
		ev.warn(api.ReasonConditionSkipped, Finding{Policy: &by}, "%s (when: %s)", p.After.NoteText(ev.redactNote(n)), n.When)
	}
}

// redactNote returns a note without what depends on values that the condition reads: they
// are of policies that its writer may not be allowed to read, or the reader is not allowed
// to read the policies above.
func (ev *evaluation) redactNote(n merge.Note) merge.Note {
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
