package commands

import (
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/manifest"
	"overrule.dev/overrule/internal/snapshot"
)

// schemaViolations returns what is wrong with the manifests of the query by the
// definitions of their kinds. The path of each is the object alone. A policy that is
// found to be invalid by itself already is not reported twice.
func (q *query) schemaViolations(found []api.Violation) []api.Violation {
	known := make(map[api.Ref]bool)
	for i := range found {
		v := &found[i]
		if v.Code == api.ReasonEffectiveInvalid && v.Rule == "" && v.Policy != nil {
			q.setProblemField(v)
		}
		if v.Policy != nil && (v.Code == api.ReasonInvalid || v.Code == api.ReasonEffectiveInvalid) {
			known[*v.Policy] = true
		}
	}
	var out []api.Violation
	for _, p := range q.problems {
		ref := p.Object.Ref(q.kinds, q.namespace)
		if !q.IncludesKind(p.Object.Kind) || !q.includesObject(ref) || known[ref] && !p.Unknown {
			continue
		}
		f := finding(p)
		if q.strict {
			f.Action = api.Deny
		}
		out = append(out, api.Violation{
			Code: f.Code, Action: f.Action, PolicyKind: p.Object.Kind, Policy: &ref, Message: p.Message,
			Path: []api.PathElement{{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}}, Object: ref, Field: p.Field,
		})
	}
	return out
}

// setProblemField sets the field of a violation that a policy has by itself.
func (q *query) setProblemField(v *api.Violation) {
	i := slices.IndexFunc(q.problems, func(p manifest.Problem) bool { return !p.Unknown && q.isOf(p, *v.Policy) })
	if i >= 0 {
		v.Object, v.Field = *v.Policy, q.problems[i].Field
	}
}

// includesObject reports whether the query includes an object by itself: it is named, or
// none is and it is in the namespace of -n.
func (q *query) includesObject(ref api.Ref) bool {
	return slices.ContainsFunc(q.Objects, func(o snapshot.Object) bool { return o.Ref() == ref }) ||
		len(q.Objects) == 0 && (q.allNamespaces || !q.namespaceSet || ref.Namespace == "" || ref.Namespace == q.namespace)
}
