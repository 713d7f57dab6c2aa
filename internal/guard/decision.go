package guard

import (
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/snapshot"
)

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
