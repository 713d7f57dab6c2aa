package guard

import (
	"context"
	"fmt"
	"slices"
	"time"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// Guard evaluates changes. It is safe for concurrent use.
type Guard struct {
	Engine *effective.Engine
	// ReadLive, if set, is asked once for a target that the view lacks.
	ReadLive ReadLiveFunc
	// Permissions, if set, decides who is allowed to remove overrides; without it, no one is.
	Permissions Permissions
	// BlastRadius is the most paths whose effective policy one write may change
	// without having been acknowledged; 0 is no limit.
	BlastRadius int
	// MatchLimit is the most matches that the routes of one namespace may have on one
	// hostname of a Gateway, ListenerSet or Service; 0 is no limit.
	MatchLimit int
	// ReadsAll has messages name objects of all namespaces and show values of all objects: the
	// reader may read them. Without it, they name those of the namespace of the object that
	// is written, and show values of that object alone.
	ReadsAll bool
	// OmitCounts has messages not say how many entries lists have.
	OmitCounts bool
	// UnmetSince, if set, returns when the deletion of a policy was observed since which a
	// constraint is violated on a path, the zero time for none.
	UnmetSince func(constraint api.Ref, path []api.PathElement) time.Time
	// Budget is what the conditions of one evaluation may cost, in units of
	// CEL cost; 0 means DefaultBudget, and PathBudget more for each path.
	Budget uint64
}

// Evaluate evaluates one change on top of a view. observe, if not nil, is shown
// every touched path whose effective policy differs.
//
// A change that would cost too much to evaluate, or take longer than ctx lasts, is
// denied with the reason TooMuch, whatever fails after that. The errors are those of
// ReadLive, ErrPermissions, and an *UnlistedKindError.
func (g *Guard) Evaluate(ctx context.Context, v *snapshot.View, c Change, observe func(effective.Pair)) (*Decision, error) {
	ev := g.newEvaluation(v, g.budget(ctx))
	ev.change, ev.observe = c, observe
	if err := ev.run(ctx); err != nil && !ev.reportTooMuch(err) {
		return nil, err
	}
	if err := ev.allowSystemDeletion(ctx); err != nil && !ev.truncated && !ev.reportTooMuch(err) {
		return nil, err
	}
	return ev.decision(), nil
}

// Decision is the result of evaluating a change.
type Decision struct {
	Change Change
	// Denials, Warnings and Audits are the findings by what is done about
	// them, each sorted.
	Denials, Warnings, Audits []Finding
	Changes                   api.Changes
	// Lost are the rules that paths lose, Gained those that a new route gets.
	Lost   []api.LostRules
	Gained []api.GainedRules
	// Moved names the rules that requests lose which move to another route, rule or listener.
	Moved []string
	// After is the view as it would be after the change.
	After *snapshot.View
	// Cut is set if not all paths were evaluated: it would have cost too much.
	Cut bool
}

// Denied reports whether the change has denials.
func (d *Decision) Denied() bool { return len(d.Denials) > 0 }

// Enforcement is what is done about a denial.
type Enforcement string

// The enforcements.
const (
	// EnforceDeny denies.
	EnforceDeny Enforcement = "deny"
	// EnforceWarn allows everything, and warns of what would have been denied.
	EnforceWarn Enforcement = "warn"
	// EnforceAudit allows everything without a warning: what would
	// have been denied is in the audit log, in metrics and in Events.
	EnforceAudit Enforcement = "audit"
)

// Enforcements lists all enforcements.
var Enforcements = []Enforcement{EnforceDeny, EnforceWarn, EnforceAudit}

// Denies reports whether a denial denies. An enforcement that is not set does.
func (e Enforcement) Denies() bool { return e != EnforceWarn && e != EnforceAudit }

// Allows reports whether a change with that decision is allowed.
func (e Enforcement) Allows(d *Decision) bool { return !d.Denied() || !e.Denies() && !d.rejected() }

// Verdict returns the decision as the JSON contract shows it.
func (d *Decision) Verdict(e Enforcement) api.Verdict {
	return api.Verdict{
		Object: d.Change.Object().Ref(), Operation: string(d.Change.Operation),
		Allowed: e.Allows(d),
		Reasons: reasons(d.Denials), Warnings: reasons(d.Warnings),
		Changes: d.Changes, Lost: d.Lost, Gained: d.Gained, Moved: d.Moved,
	}
}

// rejected reports whether the API server rejects the object, whatever the enforcement.
func (d *Decision) rejected() bool {
	return slices.ContainsFunc(d.Denials, func(f Finding) bool {
		return f.Code == api.ReasonSchemaInvalid || f.Code == api.ReasonUnknownField
	})
}

func reasons(findings []Finding) []api.Reason {
	var out []api.Reason
	for _, f := range findings {
		out = append(out, f.Reason())
	}
	return out
}

// run evaluates the change. The findings are complete only if there is no error.
func (ev *evaluation) run(ctx context.Context) error {
	scope, err := ev.prepare(ctx)
	if err != nil {
		return err
	}
	if err := ev.comparePaths(scope); err != nil {
		return err
	}
	if err := ev.evaluateNewOwner(ctx); err != nil {
		return err
	}
	if err := ev.summarize(ctx); err != nil {
		return err
	}
	return unlistedCheck{ev}.check(ctx)
}

// prepare checks the object alone, sets the views before and after the change, and returns
// the paths that the change touches.
func (ev *evaluation) prepare(ctx context.Context) (effective.Scope, error) {
	switch ev.change.Object().(type) {
	case *policykind.Profile, *policykind.Definition:
		return ev.kinds.prepare(ctx)
	case *constraint.Constraint:
		ev.before, ev.after = ev.change.apply(ev.before)
		return effective.Scope{}, constraintWrite{ev.write}.check(ctx)
	}
	ev.change.packPolicies(ev.before)
	v, err := ev.readMissing(ctx)
	if err != nil {
		return effective.Scope{}, err
	}
	if g, ok := ev.change.Object().(*gateway.Grant); ok {
		v = withoutTerminatingGrants(v, g.Ref())
	}
	ev.before, ev.after = ev.change.apply(v)
	ev.policy, _ = ev.change.After.(*policykind.Policy)
	if ev.change.Before != nil {
		ev.old, _ = ev.before.Get(ev.change.Before.Ref()).(*policykind.Policy)
	}
	if ev.policy != nil {
		policyCheck{ev.write}.check()
	} else {
		objectCheck{ev.requests}.check()
	}
	maximumCheck{ev.requests}.check()
	return ev.scope(), nil
}

// comparePaths evaluates the paths of a scope, before and after.
func (ev *evaluation) comparePaths(s effective.Scope) error {
	s.Empty = ev.after.Constrained() // constraints bind paths without a policy, too
	if err := ev.trackRequests(); err != nil {
		return fmt.Errorf("find the requests that move: %w", err)
	}
	if err := ev.guard.Engine.Compare(ev.before, ev.after, s, ev.budget, ev.evaluatePair); err != nil {
		return fmt.Errorf("compare effective policies: %w", err)
	}
	if err := ev.compareWithoutTerminating(s); err != nil {
		return err
	}
	if err := ev.compareOthers(); err != nil {
		return err
	}
	if err := ev.compareAwaited(); err != nil {
		return err
	}
	if err := ev.ruleLosses.findMoved(); err != nil {
		return fmt.Errorf("find the requests that lose rules: %w", err)
	}
	if with, routes := ev.withAwaited(); with != nil {
		if err := ev.ruleLosses.findAwaited(with.successors, routes); err != nil {
			return fmt.Errorf("find the requests that lose rules to new listeners: %w", err)
		}
	}
	if err := ev.ruleLosses.findLeft(); err != nil {
		return fmt.Errorf("find the rules that a route leaves behind: %w", err)
	}
	return nil
}

// summarize turns what was counted on the paths into findings.
func (ev *evaluation) summarize(ctx context.Context) error {
	ev.reportNoPath()
	ev.reach.reportAll()
	ev.overriddenRules.reportOwn()
	ev.overriddenRules.reportOthers()
	may := &authorizer{ev: ev.write, ctx: ctx, known: make(map[api.Ref]bool)}
	if err := ev.kinds.reportAll(may); err != nil {
		return err
	}
	ev.limits.addUnattached()
	if err := ev.limits.reportAll(may); err != nil {
		return err
	}
	ev.requirements.reportAll()
	ev.schema.reportAll()
	ev.addOwnLosses()
	if err := (&overrideReport{ev.overrides, may}).reportAll(); err != nil {
		return err
	}
	if err := ev.weakenings.reportAll(may); err != nil {
		return err
	}
	ev.ruleLosses.reportAll()
	ev.reportOwned()
	objectCheck{ev.requests}.reportGrant()
	ev.reportUnreadKinds()
	ev.blast.reportAll()
	return nil
}

// readMissing returns the view before the write with what it lacks: the targets of a policy and
// their parents, or the parents and policies to which the object that is written newly refers.
func (ev *evaluation) readMissing(ctx context.Context) (*snapshot.View, error) {
	if ev.guard.ReadLive == nil {
		return ev.before, nil
	}
	r := &liveReader{ev: ev.write, view: ev.before}
	p, ok := ev.change.After.(*policykind.Policy)
	if !ok {
		for _, policy := range newReferences(r.view, ev.change) {
			if err := r.addMissing(ctx, policy.to); err != nil {
				return nil, err
			}
		}
		err := r.addParents(ctx, newParents(ev.change))
		return r.view, err
	}
	if p.Invalid != nil || len(p.Targets) > maxLiveReads {
		return r.view, nil
	}
	for _, t := range p.Targets {
		if t.Refused != "" || t.Selector != nil {
			continue
		}
		if !effective.Exists(r.view, p.Kind, t) {
			if err := r.add(ctx, t.Ref); err != nil {
				return nil, err
			}
		}
		if err := r.addParents(ctx, parentsOf(r.view.Get(t.Ref))); err != nil {
			return nil, err
		}
	}
	return r.view, nil
}
