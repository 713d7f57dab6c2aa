package guard

import (
	"context"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cel"
	"overrule.dev/overrule/internal/effective"
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
	// Budget is what the conditions of one evaluation may cost, in units of
	// CEL cost; 0 means DefaultBudget, and PathBudget more for each path.
	Budget uint64
}

// DefaultBudget is the budget of an evaluation: about a second of evaluating conditions.
const DefaultBudget = 1_500_000

// PathBudget is what each path adds to the budget: a condition at its limit, evaluated
// twice. So a condition that is on very many paths is limited by time, and not by their
// number.
const PathBudget = 2 * cel.Limit

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

func (g *Guard) budget(ctx context.Context) *effective.Budget {
	if g.Budget == 0 {
		return effective.NewBudget(ctx, DefaultBudget).Grow(PathBudget)
	}
	return effective.NewBudget(ctx, g.Budget)
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
	// Moved names the rules that requests lose which move to another route or rule.
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
