package commands

import (
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/build"
	"overrule.dev/overrule/internal/cli/report"
	"overrule.dev/overrule/internal/guard"
)

// reportBuilder makes the report of a command.
type reportBuilder struct {
	report.Report
	paths  reportPaths
	redact bool
}

func (a *app) newReport(command string, f reportFlags) *reportBuilder {
	return &reportBuilder{
		Report: report.Report{Command: command, Version: build.Read().Version, Notes: a.notes},
		paths:  reportPaths{root: f.root}, redact: a.redact,
	}
}

// done returns the report with the findings sorted by severity.
func (b *reportBuilder) done() *report.Report {
	slices.SortStableFunc(b.Findings, func(x, y report.Finding) int { return int(x.Severity) - int(y.Severity) })
	return &b.Report
}

// addManifestFindings adds the objects of a change, and what is wrong with their manifests.
func (b *reportBuilder) addManifestFindings(steps []evaluatedStep) {
	b.addSteps(steps, guard.EnforceAudit)
	b.Findings = slices.DeleteFunc(b.Findings, func(f report.Finding) bool {
		return f.Code != api.ReasonSchemaInvalid && f.Code != api.ReasonUnknownField
	})
}

// addSteps adds the objects of a change, and their findings.
func (b *reportBuilder) addSteps(steps []evaluatedStep, enforcement guard.Enforcement) {
	for _, e := range steps {
		ref, operation := e.objectAndOperation()
		b.Objects = append(b.Objects, report.Object{
			Ref: ref, Operation: operation, Allowed: enforcement.Allows(e.decision), At: b.paths.location(e.stored, ""),
		})
		severity := report.Error
		if !enforcement.Denies() {
			severity = report.Warning
		}
		for _, f := range guard.OmitRepeated(e.decision.Denials) {
			b.addFinding(e, f, severity)
		}
		for _, f := range guard.OmitRepeated(e.decision.Warnings) {
			b.addFinding(e, f, report.Warning)
		}
	}
}

func (b *reportBuilder) addFinding(e evaluatedStep, f guard.Finding, severity report.Severity) {
	ref, operation := e.objectAndOperation()
	reason := f.Reason()
	if b.redact {
		redactReason(&reason)
	}
	at := findingField(f, e.stored, e.old, e.decision.Change.Object())
	b.Findings = append(b.Findings, report.Finding{
		Severity: severity, Code: f.Code, Object: ref, Operation: operation,
		Rule: f.Rule, Policy: f.Policy, Message: reason.Message, At: b.paths.location(e.stored, at),
	})
}

// addChanges adds what changes in the end. A path that several objects change has no
// object of its own.
func (b *reportBuilder) addChanges(n *netChanges) {
	for _, c := range n.changed() {
		change := c.change()
		if c.several {
			change.Object, change.Operation = api.Ref{}, ""
		}
		b.Changes = append(b.Changes, change)
	}
	b.Diagram = diagram(n.changed())
	if b.redact {
		redactChanges(b.Changes)
	}
}

// addDryRun adds the objects of dry runs, and their findings.
func (b *reportBuilder) addDryRun(r *dryRunResult) {
	for i, v := range r.verdicts {
		o := r.objects[i]
		b.Objects = append(b.Objects, report.Object{Ref: v.Object, Operation: v.Operation, Allowed: v.Allowed, At: b.paths.location(o, "")})
		add := func(severity report.Severity, all []api.Reason) {
			for _, reason := range all {
				at := ""
				if k := r.kinds.Of(o.Kind); k != nil {
					at = ruleField(o, k, reason.Rule)
				}
				b.Findings = append(b.Findings, report.Finding{
					Severity: severity, Code: reason.Code, Object: v.Object, Operation: v.Operation,
					Rule: reason.Rule, Policy: reason.Policy, Message: reason.Message, At: b.paths.location(o, at),
				})
			}
		}
		add(report.Error, v.Reasons)
		add(report.Warning, v.Warnings)
	}
}
