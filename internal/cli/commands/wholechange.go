package commands

import (
	"context"
	"fmt"
	"maps"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
)

// removeStanding removes the warnings of an update that the update of the object to what
// it is already would return, too.
func (c *changeEvaluator) removeStanding(ctx context.Context, e *evaluatedStep) error {
	if e.decision == nil || e.decision.Change.Operation != guard.Update || len(e.decision.Warnings) == 0 {
		return nil
	}
	standing, ref := make(map[string]bool), e.decision.Change.Object().Ref()
	for _, p := range c.problems {
		if c.isOf(p, ref) {
			standing[findingKey(finding(p))] = true
		}
	}
	if change := e.decision.Change; !e.final && e.kindChange == nil {
		change.After, change.Owner, change.End = change.Before, "", nil
		same, _, err := c.evaluate(ctx, change, nil)
		if err != nil {
			return err
		}
		for _, f := range slices.Concat(same.Denials, same.Warnings) {
			standing[findingKey(f)] = true
		}
	}
	e.decision.Warnings = slices.DeleteFunc(e.decision.Warnings, func(f guard.Finding) bool { return standing[findingKey(f)] })
	return nil
}

// isMissing reports whether a finding is about something that does not exist.
func isMissing(f guard.Finding) bool {
	return f.Code == api.ReasonNoPath || f.Code == api.ReasonTargetNotFound
}

// dependsOnOthers reports whether a finding is about what other objects have or lack, so that
// a later step can make it obsolete.
func dependsOnOthers(f guard.Finding) bool {
	switch f.Code {
	case api.ReasonUnreached, api.ReasonTriggerUnmatched, api.ReasonRequirementUnmet, api.ReasonOverrideWeakened:
		return true
	case api.ReasonOverridden:
		return f.Policy != (api.Ref{})
	default:
		return isMissing(f)
	}
}

// isLoss reports whether a finding is about lost rules.
func isLoss(f guard.Finding) bool { return f.Code == api.ReasonRulesLost }

// takesAway reports whether a finding is about lost rules, or an override that no longer holds.
func takesAway(f guard.Finding) bool {
	return isLoss(f) || f.Code == api.ReasonOverrideRemoved || f.Code == api.ReasonOverrideEvaded || f.Code == api.ReasonOverrideWeakened
}

// evaluateUntilEnd evaluates a step as if it were one with those that lead from a view to the
// one in the end; nil if it did not take effect, or changes how others are read.
func (c *changeEvaluator) evaluateUntilEnd(ctx context.Context, e *evaluatedStep, from *snapshot.View) (*evaluatedStep, error) {
	if e.decision == nil || e.final || e.kindChange != nil {
		return nil, nil
	}
	end, out, change := c.view, *e, e.decision.Change
	ref := change.Object().Ref()
	change.Before, change.After, change.End = from.Get(ref), end.Get(ref), end
	if (change.After == nil) != (e.decision.Change.After == nil) {
		return nil, nil // it was denied, or deleted with its namespace
	}
	c.view = from
	defer func() { c.view = end }()
	var err error
	if out.decision, out.pairs, err = c.evaluate(ctx, change, nil); err != nil {
		return nil, err
	}
	return &out, c.removeStanding(ctx, &out)
}

// removeOutdated removes what later steps made obsolete from what is said about a step, such
// as a route that was missing, or one that took its requests: findings about other objects
// are those of the step as if it were the last one.
func (c *changeEvaluator) removeOutdated(ctx context.Context, e *evaluatedStep) error {
	if e.decision == nil || e.decision.Changes.Unreached == 0 && !slices.ContainsFunc(e.decision.Warnings, dependsOnOthers) {
		return nil
	}
	d := e.decision
	last, err := c.evaluateUntilEnd(ctx, e, c.view.With(snapshot.Change{Ref: d.Change.Object().Ref(), Object: d.Change.Before}))
	if err != nil || last == nil {
		return err
	}
	outdated := dependsOnOthers
	if last.decision.Change.After == d.Change.Before { // it was denied
		outdated = isMissing
	}
	d.Warnings = replaceFindings(d.Warnings, last.decision.Warnings, outdated)
	d.Changes.Unreached = min(d.Changes.Unreached, last.decision.Changes.Unreached)
	unreached := make(map[string]bool)
	for _, p := range last.pairs {
		unreached[keyOfEffective(p.Effective())] = p.Unreached
	}
	for i := range e.pairs {
		p := &e.pairs[i]
		p.Unreached = p.Unreached && unreached[keyOfEffective(p.Effective())]
	}
	return nil
}

// replaceFindings returns findings with those of others in place of their own that match.
func replaceFindings(all, others []guard.Finding, matches func(guard.Finding) bool) []guard.Finding {
	at := max(slices.IndexFunc(all, matches), 0)
	kept := slices.DeleteFunc(slices.Clone(all), matches)
	others = slices.DeleteFunc(slices.Clone(others), func(f guard.Finding) bool { return !matches(f) })
	return slices.Insert(kept, at, others...)
}

// loss is what says that rules are lost: a finding about those of a policy, or a count.
type loss struct {
	policy api.Ref
	moves  bool   // requests that move lose them
	rules  string // of a count
}

func lossOf(f guard.Finding) loss { return loss{policy: f.Policy, moves: f.Request != ""} }

// losses returns what says that a step loses rules.
func losses(d *guard.Decision) map[loss]bool {
	out := make(map[loss]bool)
	for _, f := range d.Warnings {
		if isLoss(f) {
			out[lossOf(f)] = true
		}
	}
	for _, l := range d.Lost {
		out[loss{rules: l.Rules}] = true
	}
	return out
}

// judgeAsOne has lost rules and overrides be those that all steps lose together which lead from a
// view to the one in the end: what one takes away and another one gives back is not lost. Some
// are lost by several alone: if one deletes a policy, and another one moves the requests to its
// route to another one. The last of these says so.
func (o *applyOrder) judgeAsOne(ctx context.Context, from *snapshot.View) error {
	asOne := make([]*evaluatedStep, len(o.results))
	said := make(map[loss]bool) // by steps; true if all together have the loss there, too
	for i := range o.results {
		e := &o.results[i]
		if e.decision == nil || !o.allows(e.decision) {
			continue
		}
		one, err := o.evaluator.evaluateUntilEnd(ctx, e, from)
		if err != nil {
			return err
		}
		if asOne[i] = one; one == nil {
			continue
		}
		together := losses(one.decision)
		for l := range losses(e.decision) {
			said[l] = said[l] || together[l]
		}
	}
	for i, one := range slices.Backward(asOne) {
		if one == nil {
			continue
		}
		e := &o.results[i]
		e.judgeLosses(one.decision, said)
		e.judgeOverrides(one.decision)
		if o.denials[i] != nil {
			e.denyEvasion(one.decision)
		}
	}
	return nil
}

// judgeLosses replaces the lost rules of a step by those of all steps together, but for those
// that another step says, or that policies give up which are edited.
func (e *evaluatedStep) judgeLosses(one *guard.Decision, said map[loss]bool) {
	d, own := e.decision, losses(e.decision)
	omit := func(l loss) bool {
		confirmed, some := said[l]
		return !own[l] && (confirmed || !some && !l.moves)
	}
	lost := slices.DeleteFunc(slices.Clone(one.Warnings), func(f guard.Finding) bool { return isLoss(f) && omit(lossOf(f)) })
	d.Warnings = replaceFindings(d.Warnings, lost, isLoss)
	d.Lost = slices.DeleteFunc(slices.Clone(one.Lost), func(l api.LostRules) bool { return omit(loss{rules: l.Rules}) })
	if d.Moved = nil; slices.ContainsFunc(d.Warnings, isLoss) {
		d.Moved = one.Moved
	}
	maps.Copy(said, losses(d))
}

// judgeOverrides removes the warnings about overrides that hold after all steps together.
func (e *evaluatedStep) judgeOverrides(one *guard.Decision) {
	all := slices.Concat(one.Denials, one.Warnings)
	e.decision.Warnings = slices.DeleteFunc(e.decision.Warnings, func(f guard.Finding) bool {
		return takesAway(f) && !slices.ContainsFunc(all, func(o guard.Finding) bool {
			return takesAway(o) && o.Policy == f.Policy && o.Rule == f.Rule
		})
	})
}

// denyEvasion denies a step that waited for others if all together take away an override: the
// order, such as one with an outage in it, only hides that.
func (e *evaluatedStep) denyEvasion(one *guard.Decision) {
	d := e.decision
	d.Denials = slices.DeleteFunc(slices.Clone(one.Denials), func(f guard.Finding) bool { return !takesAway(f) })
	if len(d.Denials) > 0 {
		d.Changes, d.Lost = one.Changes, one.Lost
		d.Warnings = slices.DeleteFunc(d.Warnings, func(f guard.Finding) bool { return f.Code == api.ReasonApplyOrder })
	}
}

// findingKey returns a key that is equal for findings that say the same.
func findingKey(f guard.Finding) string {
	return fmt.Sprintf("%s %s %s %v", f.Code, f.Rule, f.What, f.Policy)
}
