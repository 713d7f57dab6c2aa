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
	paths reportPaths
}

func (a *app) newReport(command string, f reportFlags) *reportBuilder {
	return &reportBuilder{
		Report: report.Report{Command: command, Version: build.Read().Version, Notes: a.notes, Remarks: a.remarks},
		paths:  reportPaths{root: f.root},
	}
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
		o := b.object(&e)
		o.Allowed, o.Moved = enforcement.Allows(e.decision), e.movedText()
		b.Objects = append(b.Objects, o)
		severity := report.Error
		if !enforcement.Denies() {
			severity = report.Warning
		}
		b.addFindings(&e, severity, e.decision.Denials)
		b.addFindings(&e, report.Warning, e.decision.Warnings)
	}
}

func (b *reportBuilder) addFindings(e *evaluatedStep, severity report.Severity, all []guard.Finding) {
	ref, operation := e.objectAndOperation()
	for _, f := range guard.OmitRepeated(all) {
		at := f.Field
		if at == "" && e.old != nil {
			at = e.stored.FirstChange(e.old)
		}
		b.Findings = append(b.Findings, report.Finding{
			Severity: severity, Code: f.Code, Object: ref, Operation: operation,
			Rule: f.Rule, Policy: f.Policy, Message: f.Message(), At: b.paths.location(e.stored, at),
			CountsPaths: f.Code == api.ReasonBlastRadius && f.Short != "",
		})
	}
}

// addChanges adds what changes in the end.
func (b *reportBuilder) addChanges(n *netChanges) {
	changed := n.changed()
	all := make([]api.Change, 0, len(changed))
	for _, c := range changed {
		change := report.Change{Change: c.change(), Was: c.was(), New: c.Before == nil, Removed: c.After == nil}
		for _, e := range c.causes {
			change.Causes = append(change.Causes, b.object(e))
		}
		all = append(all, change.Change)
		b.Changes = append(b.Changes, change)
	}
	b.Effect = api.ChangesText(all)
	b.Diagram = diagram(changed)
}

// object returns the object of a step.
func (b *reportBuilder) object(e *evaluatedStep) report.Object {
	ref, operation := e.objectAndOperation()
	return report.Object{Ref: ref, Operation: operation, At: b.paths.location(e.stored, "")}
}
