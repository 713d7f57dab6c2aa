package commands

import (
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/build"
	"overrule.dev/overrule/internal/cli/manifest"
	"overrule.dev/overrule/internal/cli/report"
	"overrule.dev/overrule/internal/guard"
)

// reportBuilder makes the report of a command.
type reportBuilder struct {
	report.Report
	paths reportPaths
}

func (f *reportFlags) newReport(t *terminal, command string) *reportBuilder {
	return &reportBuilder{
		Report: report.Report{Command: command, Version: build.Read().Version, Notes: t.notes, Remarks: t.remarks, WarningsFail: f.failOn == failOnWarn},
		paths:  reportPaths{root: f.root, sources: make(map[string]*manifest.Set)},
	}
}

// addManifestFindings adds the objects of a change, and what is wrong with their manifests.
func (b *reportBuilder) addManifestFindings(steps []evaluatedStep) {
	for _, e := range steps {
		b.addVerdict(e.decision.Verdict(guard.EnforceAudit), report.Warning, e.stored, e.old)
	}
	b.Findings = slices.DeleteFunc(b.Findings, func(f report.Finding) bool {
		return f.Code != api.ReasonSchemaInvalid && f.Code != api.ReasonUnknownField
	})
}

// addVerdict adds the object of a change, and its findings: with that severity if they
// deny. old is what it replaces, nil if that is not known.
func (b *reportBuilder) addVerdict(v api.Verdict, denials report.Severity, o, old *manifest.Object) {
	b.Objects = append(b.Objects, report.Object{
		Ref: v.Object, Operation: v.Operation, Allowed: v.Allowed, Moved: v.MovedText(), At: b.paths.location(o, ""),
	})
	add := func(severity report.Severity, all []api.Reason) {
		for _, r := range all {
			if r.Whole && r.Rule != "" {
				continue // one finding is for all rules
			}
			at := r.Field
			if at == "" && old != nil {
				at = o.FirstChange(old)
			}
			b.Findings = append(b.Findings, report.Finding{
				Severity: severity, Code: r.Code, Object: v.Object, Operation: v.Operation,
				Rule: r.Rule, Policy: r.Policy, Message: r.Message, At: b.paths.location(o, at), CountsPaths: r.CountsPaths,
			})
		}
	}
	add(denials, v.Reasons)
	add(report.Warning, v.Warnings)
}

// addChanges adds what changes in the end.
func (b *reportBuilder) addChanges(n *netChanges) {
	changed := n.changed()
	for _, c := range changed {
		change := report.Change{Change: c.change(), Namespace: c.Effective().Path.Namespace(), Was: c.was(), New: c.Before == nil, Removed: c.After == nil}
		for _, e := range c.causes {
			change.Causes = append(change.Causes, b.object(e))
		}
		b.Changes = append(b.Changes, change)
	}
	b.Diagram = diagram(changed)
}

// object returns the object of a step.
func (b *reportBuilder) object(e *evaluatedStep) report.Object {
	ref, operation := e.objectAndOperation()
	return report.Object{Ref: ref, Operation: operation, At: b.paths.location(e.stored, "")}
}
