package guard

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
)

// Violations returns what is wrong with the effective policies of a scope as they
// are, by policy kind, path and reason. The error is that ctx ended
// (effective.ErrTooMuch); what conditions cost is not limited.
func (g *Guard) Violations(ctx context.Context, v *snapshot.View, s effective.Scope) ([]api.Violation, error) {
	return g.ViolationsOn(ctx, v, s, func(*effective.Effective) bool { return true })
}

// ViolationsOn is Violations on some paths of a scope.
func (g *Guard) ViolationsOn(ctx context.Context, v *snapshot.View, s effective.Scope, on func(*effective.Effective) bool) ([]api.Violation, error) {
	s.Empty = v.Constrained()
	budget := effective.NewBudget(ctx, math.MaxUint64)
	var out []api.Violation
	err := g.Engine.Walk(v, s, false, budget, func(e *effective.Effective) error { //nolint:contextcheck // the budget has it
		if !on(e) {
			return nil
		}
		found, err := g.violationsOn(v, e, budget)
		out = append(out, found...)
		return err
	})
	slices.SortStableFunc(out, CompareViolations)
	return out, err
}

// ViolationsWithoutPath returns what is wrong by itself with policies of a view that are on no path:
// they cannot be read, or break the schema of their kind. The path of a violation is
// the policy's first target alone, or the policy where that has no name. The error is
// as of Violations.
func (g *Guard) ViolationsWithoutPath(ctx context.Context, v *snapshot.View, policies []*policykind.Policy) ([]api.Violation, error) {
	budget := effective.NewBudget(ctx, math.MaxUint64)
	var out []api.Violation
	for _, p := range policies {
		ev, e := g.newEvaluation(v, budget), effective.Pathless(p)
		if p.Invalid != nil {
			ev.reportForKind(p.Kind, api.ReasonInvalid, api.Deny, Finding{Policy: p.Ref(), What: unreadableText(p)})
		} else if err := ev.schema.checkStandalone(e); err != nil { //nolint:contextcheck // the budget has it
			return nil, err
		}
		out = append(out, auditOf{ev}.violations(e)...)
	}
	slices.SortStableFunc(out, CompareViolations)
	return out, nil
}

// violationsOn evaluates one path as if a write had just created it.
func (g *Guard) violationsOn(v *snapshot.View, e *effective.Effective, b *effective.Budget) ([]api.Violation, error) {
	ev := g.newEvaluation(v, b)
	if err := ev.evaluateAfter(effective.Pair{After: e}); err != nil {
		return nil, err
	}
	if err := ev.schema.checkStandalone(e); err != nil {
		return nil, err
	}
	ev.limits.reportUnbound(e)
	if err := cmp.Or(ev.limits.reportAll(nil), ev.weakenings.reportAll(nil)); err != nil {
		return nil, err
	}
	ev.requirements.reportAll()
	ev.schema.reportAll()
	return auditOf{ev}.violations(e), nil
}

// auditOf turns what is found on paths as they are into violations.
type auditOf struct{ *evaluation }

// violations returns the findings of a path.
func (ev auditOf) violations(e *effective.Effective) []api.Violation {
	var out []api.Violation
	for _, action := range []api.Action{api.Deny, api.Warn, api.Audit} {
		for _, f := range ev.findings.withAction(action) {
			violation := api.Violation{
				Code: f.Code, Action: f.Action, PolicyKind: e.Kind.Ref(), Path: e.Path.Elements(),
				Rule: f.Rule, Policy: optional(f.Policy), Message: f.What,
			}
			violation.Object, violation.Field = ev.causeOf(e, &f)
			if !f.until.IsZero() {
				violation.Until = new(metav1.NewTime(f.until))
			}
			out = append(out, violation)
		}
	}
	return out
}

// causeOf returns the object that causes a violation, and its field: the policy that the
// violation names, or whose rule is in effect there, else the end of the path.
func (ev auditOf) causeOf(e *effective.Effective, f *Finding) (object api.Ref, at string) {
	named, _ := ev.after.Get(f.Policy).(*policykind.Policy)
	origin := ev.originOf(e, f.Rule)
	if f.Code == api.ReasonOverrideWeakened && origin != nil || named == nil { // it names the policy with the override
		named = origin
	}
	switch {
	case named == nil:
		return ev.endOf(&e.Path)
	case f.Code == api.ReasonInvalid:
		return named.Ref(), named.InvalidField()
	case f.Rule == "":
		return named.Ref(), named.TargetsField()
	default:
		return named.Ref(), named.RuleField(f.Rule)
	}
}

// originOf returns the policy from which the value at an address in an effective spec
// comes; nil if there is none.
func (ev auditOf) originOf(e *effective.Effective, rule string) *policykind.Policy {
	at, err := merge.ParseKey(rule)
	if err != nil {
		return nil
	}
	for _, r := range e.Rules {
		if (r.Key.Holds(at) || at.Holds(r.Key)) && r.From.Block != merge.Object {
			p, _ := ev.after.Get(e.Ref(r.From.Policy)).(*policykind.Policy)
			return p
		}
	}
	return nil
}

// endOf returns the last object of a path that exists, and the field of a rule of a route.
func (ev auditOf) endOf(p *gateway.Path) (api.Ref, string) {
	field := ""
	if p.Route != nil && p.Rule >= 0 {
		field = fmt.Sprintf("spec.rules[%d]", p.Rule)
	}
	switch {
	case p.Backend != nil && ev.after.Get(p.Backend.Object) != nil:
		return p.Backend.Object, field
	case p.Route != nil:
		return p.Route.Ref(), field
	case p.Virtual != nil:
		return *p.Virtual, field
	case p.Service != nil:
		return p.Service.Ref(), field
	case p.Set != nil:
		return p.Set.Ref(), field
	default:
		return p.Gateway.Ref(), field
	}
}

// checkStandalone checks whether policies of a path violate the schema of their kind by
// themselves.
func (ev *schemaViolations) checkStandalone(e *effective.Effective) error {
	for i := range e.Outcomes {
		v, err := ev.checker().CheckStandalone(e, e.Outcomes[i].Policy, ev.budget)
		if err != nil {
			return fmt.Errorf("check policies against their definition: %w", err)
		}
		if v.Unchecked != "" {
			ev.warn(api.ReasonNotRead, Finding{}, "%s", v.Unchecked)
		}
		for _, problem := range v.Problems {
			ref := e.Ref(e.Outcomes[i].Policy)
			ev.reportForKind(e.Kind, api.ReasonEffectiveInvalid, api.Deny, Finding{
				Policy: ref, What: fmt.Sprintf("%s by itself violates the schema of its kind: %s", ref, problem.Message),
			})
		}
	}
	return nil
}

// CompareViolations orders violations by policy kind, then path, then as reasons are.
func CompareViolations(a, b api.Violation) int {
	if c := cmp.Or(api.ComparePolicyKinds(a.PolicyKind, b.PolicyKind), api.ComparePaths(a.Path, b.Path)); c != 0 {
		return c
	}
	return compare(findingOf(a), findingOf(b))
}

func findingOf(v api.Violation) Finding {
	return Finding{Code: v.Code, Rule: v.Rule, Policy: deref(v.Policy), What: v.Message}
}

func deref(ref *api.Ref) api.Ref {
	if ref == nil {
		return api.Ref{}
	}
	return *ref
}
