package commands

import (
	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/manifest"
)

// schemaViolation is what is wrong with a manifest, as a violation. Its problem has the
// position.
type schemaViolation struct {
	api.Violation
	problem manifest.Problem
}

// schemaViolations returns what is wrong with the manifests of the query by the
// definitions of their kinds. The path of each is the object alone.
func (q *query) schemaViolations() []schemaViolation {
	var out []schemaViolation
	for _, p := range q.problems {
		ref := p.Object.Ref(q.kinds, q.source.namespace)
		if !q.includesKind(p.Object.Kind) || !q.includesObject(ref) {
			continue
		}
		f := finding(p)
		out = append(out, schemaViolation{problem: p, Violation: api.Violation{
			Code: f.Code, Action: f.Action, PolicyKind: p.Object.Kind, Policy: &ref, Message: p.Message,
			Path: []api.PathElement{{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}},
		}})
	}
	return out
}

// includesObject reports whether the query includes an object by itself: it is named, or
// none is and it is in the namespace of -n.
func (q *query) includesObject(ref api.Ref) bool {
	for _, o := range q.objects {
		if o.Ref() == ref {
			return true
		}
	}
	return len(q.objects) == 0 && (q.allNamespaces || !q.namespaceSet || ref.Namespace == "" || ref.Namespace == q.source.namespace)
}
