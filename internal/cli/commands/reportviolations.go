package commands

import (
	"context"
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/manifest"
	"overrule.dev/overrule/internal/cli/report"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
)

// addViolations adds violations of the objects of a query.
func (b *reportBuilder) addViolations(ctx context.Context, q *query, found []api.Violation) error {
	l, err := newViolationLocator(ctx, q, found)
	if err != nil {
		return err
	}
	for _, v := range found {
		object, at := l.locate(v)
		f := report.Finding{
			Severity: severityOf(v.Action), Code: v.Code, Object: object, PolicyKind: v.PolicyKind, Path: v.Path,
			Rule: v.Rule, Policy: v.Policy, Message: v.Message,
		}
		if b.redact {
			f.Message = redactedMessage(v.Code, v.Rule, v.Policy, v.Message)
		}
		if o := l.manifests[object]; o != nil {
			f.At = b.paths.location(o, at)
		}
		b.Findings = append(b.Findings, f)
	}
	return nil
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

// violationLocator finds the object and the field that cause a violation.
type violationLocator struct {
	*query
	manifests map[api.Ref]*manifest.Object
	// paths are the effective policies of the paths with violations, by pathKey.
	paths map[string]*effective.Effective
}

func newViolationLocator(ctx context.Context, q *query, found []api.Violation) (*violationLocator, error) {
	l := &violationLocator{q, make(map[api.Ref]*manifest.Object), make(map[string]*effective.Effective)}
	if q.set != nil {
		for _, o := range q.set.Objects {
			l.manifests[o.Ref(q.kinds, q.namespace)] = o
		}
	}
	wanted := make(map[string]bool)
	for _, v := range found {
		wanted[pathKey(v.PolicyKind, v.Path)] = true
	}
	err := q.WalkAll(ctx, func(e *effective.Effective) {
		if key := keyOfEffective(e); wanted[key] {
			l.paths[key] = e
		}
	})
	if err != nil {
		return nil, fmt.Errorf("find the objects of the violations: %w", err)
	}
	return l, nil
}

// locate returns the object that causes a violation, and its field: the policy that the
// violation names, or whose rule is in force there, else the rule of the route.
func (l *violationLocator) locate(v api.Violation) (api.Ref, string) {
	if p := l.problemOf(v); p != nil {
		return *v.Policy, p.Field
	}
	e := l.paths[pathKey(v.PolicyKind, v.Path)]
	if v.Code == api.ReasonOverrideWeakened { // the other policy is the one with the override
		if p := l.policy(originOf(e, v.Rule)); p != nil {
			return p.Ref(), l.fieldOf(p, v)
		}
	}
	if named := l.policy(v.Policy); named != nil {
		return named.Ref(), l.fieldOf(named, v)
	}
	if p := l.policy(originOf(e, v.Rule)); p != nil {
		return p.Ref(), l.fieldOf(p, v)
	}
	for _, at := range slices.Backward(v.Path) {
		kind := strings.TrimSuffix(at.Kind, "Rule")
		for _, group := range []string{api.GatewayGroup, ""} {
			ref := api.Ref{Group: group, Kind: kind, Namespace: at.Namespace, Name: at.Name}
			if l.manifests[ref] != nil {
				return ref, routeRuleField(v.Path)
			}
		}
	}
	if v.Policy != nil && !constraint.IsKind(v.Policy.PolicyKind()) {
		return *v.Policy, ""
	}
	return endOf(v.Path), ""
}

// problemOf returns the problem of a manifest that a violation reports: by its message, or
// the first one of a policy that is invalid by itself; nil if there is none.
func (l *violationLocator) problemOf(v api.Violation) *manifest.Problem {
	byMessage := v.Code == api.ReasonSchemaInvalid || v.Code == api.ReasonUnknownField
	if v.Policy == nil || !byMessage && (v.Code != api.ReasonEffectiveInvalid || v.Rule != "") {
		return nil
	}
	for i := range l.problems {
		p := &l.problems[i]
		if (byMessage && p.Message == v.Message || !byMessage && !p.Unknown) && l.isOf(*p, *v.Policy) {
			return p
		}
	}
	return nil
}

// policy returns a policy of the view, nil for another object.
func (l *violationLocator) policy(ref *api.Ref) *policykind.Policy {
	if ref == nil {
		return nil
	}
	p, _ := l.view.Get(*ref).(*policykind.Policy)
	return p
}

// fieldOf returns the field of a policy that a violation is about.
func (l *violationLocator) fieldOf(p *policykind.Policy, v api.Violation) string {
	switch {
	case v.Code == api.ReasonInvalid:
		return p.InvalidField()
	case v.Rule == "":
		return p.TargetsField()
	default:
		return p.RuleField(v.Rule)
	}
}

// routeRuleField returns the field of a rule of a route on a path, "" for none.
func routeRuleField(path []api.PathElement) string {
	for _, e := range path {
		if e.Index != nil && strings.HasSuffix(e.Kind, "Rule") {
			return fmt.Sprintf("spec.rules[%d]", *e.Index)
		}
	}
	return ""
}

// originOf returns the policy from which the value at an address in an effective spec
// comes; nil if there is none.
func originOf(e *effective.Effective, rule string) *api.Ref {
	at, err := merge.ParseKey(rule)
	if e == nil || rule == "" || err != nil {
		return nil
	}
	for _, r := range e.Rules {
		if (r.Key.Holds(at) || at.Holds(r.Key)) && r.From.Block != merge.Object {
			ref := e.Ref(r.From.Policy)
			return &ref
		}
	}
	return nil
}

// endOf returns the object at the end of a path.
func endOf(path []api.PathElement) api.Ref {
	e := path[len(path)-1]
	return api.Ref{Kind: e.Kind, Namespace: e.Namespace, Name: e.Name}
}
