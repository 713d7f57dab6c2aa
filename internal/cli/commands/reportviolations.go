package commands

import (
	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/manifest"
	"overrule.dev/overrule/internal/cli/report"
)

// addViolations adds violations of the objects of a query.
func (b *reportBuilder) addViolations(q *query, found []api.Violation) {
	manifests := make(map[api.Ref]*manifest.Object)
	if q.set != nil {
		for _, o := range q.set.Objects {
			manifests[o.Ref(q.kinds, q.namespace)] = o
		}
	}
	for _, v := range found {
		f := report.Finding{
			Severity: severityOf(v.Action), Code: v.Code, Object: v.Object, PolicyKind: v.PolicyKind, Path: v.Path,
			Rule: v.Rule, Policy: v.Policy, Message: v.Message,
		}
		if o := manifests[v.Object]; o != nil {
			f.At = b.paths.location(o, v.Field)
		}
		b.Findings = append(b.Findings, f)
	}
}

func severityOf(a api.Action) report.Severity {
	switch a {
	case api.Deny:
		return report.Error
	case api.Warn:
		return report.Warning
	default:
		return report.Note
	}
}
