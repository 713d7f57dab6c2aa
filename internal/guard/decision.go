package guard

import (
	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/snapshot"
)

// Decision is what the guard says of a change.
type Decision struct {
	Change Change
	// Denials, Warnings and Audits are the findings by what is done about
	// them, each sorted.
	Denials, Warnings, Audits []Finding
	Changes                   api.Changes
	// After is the view as it would be after the change.
	After *snapshot.View
	// Cut tells that not all paths were looked at: it would have been too much.
	Cut bool
}

// Denied reports whether something speaks against the change.
func (d *Decision) Denied() bool { return len(d.Denials) > 0 }

// Enforcement is what is done about a denial.
type Enforcement string

// The enforcements.
const (
	// EnforceDeny denies.
	EnforceDeny Enforcement = "deny"
	// EnforceWarn allows everything, and tells what would have been denied.
	EnforceWarn Enforcement = "warn"
	// EnforceAudit allows everything and tells the writer nothing: what would
	// have been denied stands in the audit log, in metrics and in Events.
	EnforceAudit Enforcement = "audit"
)

// Enforcements are all of them.
var Enforcements = []Enforcement{EnforceDeny, EnforceWarn, EnforceAudit}

// Denies reports whether a denial denies. An enforcement that is not set does.
func (e Enforcement) Denies() bool { return e != EnforceWarn && e != EnforceAudit }

// Verdict returns the judgement as the JSON contract shows it.
func (d *Decision) Verdict(e Enforcement) api.Verdict {
	return api.Verdict{
		Object: d.Change.Object().Ref(), Operation: string(d.Change.Operation),
		Allowed: !d.Denied() || !e.Denies(),
		Reasons: reasons(d.Denials), Warnings: reasons(d.Warnings),
		Changes: d.Changes,
	}
}

func reasons(findings []Finding) []api.Reason {
	var out []api.Reason
	for _, f := range findings {
		out = append(out, f.Reason())
	}
	return out
}
