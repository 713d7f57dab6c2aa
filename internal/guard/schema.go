package guard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/schema"
	"overrule.dev/overrule/merge"
)

// These check effective specs. All guards share them: a result is remembered by the kind
// and the effective policy that it is about.
var schemaChecker, schemaCheckerWithValues = schema.NewChecker(false), schema.NewChecker(true)

// checker returns the checker whose messages show what the reader is allowed to read. Those
// about a write decide which violations are the same before and after it, for every reader.
func (ev *schemaViolations) checker() *schema.Checker {
	if ev.guard.ReadsAll && ev.change.Object() == nil {
		return schemaCheckerWithValues
	}
	return schemaChecker
}

// schemaViolations are the violations of schemas on all paths.
type schemaViolations struct {
	*write

	violations tally[schemaViolationKey, schemaViolation]
	// withoutLower are the results of checkWithoutLower.
	withoutLower map[*merge.Result]*schema.Verdict
	// lowerCost is what effective specs with lower policies of other namespaces cost.
	// lowerCounted are those that were looked at, and skipped is set if some were left out.
	lowerCost    int
	lowerCounted map[*merge.Result]bool
	skipped      bool
}

// schemaViolationKey identifies a violation of the schema of a kind, on any path.
type schemaViolationKey struct {
	kind    *policykind.Kind
	message string
	before  bool // it existed before the write
	below   bool // policies of other namespaces below what is written cause it
}

// schemaViolation is a violation on a number of paths; the first stands for all.
type schemaViolation struct {
	schemaViolationKey

	on    *effective.Effective
	paths int
}

// check checks the effective spec of a path against its schema. A violation that
// existed before is a warning.
func (ev *schemaViolations) check(p effective.Pair) error {
	if p.Before != nil && p.Before.Result == p.After.Result {
		return nil
	}
	p, err := ev.withoutCostlyLower(p)
	if err != nil {
		return fmt.Errorf("check effective policies against their definition: %w", err)
	}
	now, err := ev.checker().Check(p.After, ev.budget)
	if err != nil {
		return fmt.Errorf("check effective policies against their definition: %w", err)
	}
	if now.Unchecked != "" {
		ev.warn(api.ReasonNotRead, Finding{}, "%s", now.Unchecked)
	}
	if len(now.Problems) == 0 {
		return nil
	}
	was, err := ev.checker().Check(p.Before, ev.budget)
	if err != nil {
		return fmt.Errorf("check effective policies against their definition: %w", err)
	}
	above, err := ev.checkWithoutLower(p)
	if err != nil {
		return fmt.Errorf("check effective policies against their definition: %w", err)
	}
	for _, problem := range now.Problems {
		k := schemaViolationKey{p.After.Kind, problem.Message, was.Has(problem), above != nil && !above.HasMessage(problem)}
		ev.violations.at(k, schemaViolation{schemaViolationKey: k, on: p.After}).paths++
	}
	return nil
}

// checkWithoutLower checks the effective spec of a path without the policies of other
// namespaces below the object that is written: these must not block writes of its owner.
// It returns nil where there are none. Paths of one result share the answer.
func (ev *schemaViolations) checkWithoutLower(p effective.Pair) (v *schema.Verdict, err error) {
	if known, ok := ev.withoutLower[p.After.Result]; ok {
		return known, nil
	}
	if lower, ok := ev.lowerThanWritten(p); ok {
		rest, err := p.After.Without(lower(p.After), ev.budget)
		if err != nil {
			return nil, err
		}
		found, err := ev.checker().Check(rest, ev.budget)
		if err != nil {
			return nil, err
		}
		v = &found
	}
	put(&ev.withoutLower, p.After.Result, v)
	return v, nil
}

// lowerThanWritten returns what tells the policies of other namespaces below the object
// that is written from others on a path; ok is false if there are none.
func (ev *schemaViolations) lowerThanWritten(p effective.Pair) (lower func(*effective.Effective) func(merge.Layer) bool, ok bool) {
	level, ok := ev.levelWritten(p)
	if !ok {
		return nil, false
	}
	namespace := ev.writtenRef().Namespace
	lower = func(e *effective.Effective) func(merge.Layer) bool {
		return func(l merge.Layer) bool {
			return gateway.Level(l.Level) > level && e.Ref(l.Policy).Namespace != namespace
		}
	}
	return lower, slices.ContainsFunc(p.After.Layers, lower(p.After))
}

// withoutCostlyLower returns a pair of paths without the policies of other namespaces below
// the object that is written, once checking those cost too much.
func (ev *schemaViolations) withoutCostlyLower(p effective.Pair) (effective.Pair, error) {
	counted := ev.lowerCounted[p.After.Result]
	if p.After.Kind.Schema() == nil || counted && ev.lowerCost <= maxLowerCost {
		return p, nil
	}
	lower, ok := ev.lowerThanWritten(p)
	if !counted {
		put(&ev.lowerCounted, p.After.Result, true)
		if ok {
			ev.lowerCost += schemaCost(p.After)
		}
	}
	if !ok || ev.lowerCost <= maxLowerCost {
		return p, nil
	}
	ev.skipped = true
	out := effective.Pair{Unit: p.Unit}
	var err error
	if out.After, err = p.After.Without(lower(p.After), ev.budget); err != nil || p.Before == nil {
		return out, err
	}
	out.Before, err = p.Before.Without(lower(p.Before), ev.budget)
	return out, err
}

// schemaCost returns about what it costs to check an effective spec: its size, and more
// for large ones, since the items of lists are compared with one another.
func schemaCost(e *effective.Effective) int {
	size := 0
	for _, r := range e.Rules {
		if r.Rule != nil {
			size += 16 + sizeOf(r.Value)
		}
	}
	return size * max(1, size>>10)
}

func sizeOf(value any) int {
	switch v := value.(type) {
	case interface{ Size() int }: // packed
		return v.Size()
	case string:
		return len(v)
	case []any:
		n := 0
		for _, item := range v {
			n += 1 + sizeOf(item)
		}
		return n
	case map[string]any:
		n := 0
		for name, item := range v {
			n += len(name) + sizeOf(item)
		}
		return n
	default:
		return 8
	}
}

// levelWritten returns the level of a path at which the object that is written is: a
// policy, or a gateway or listener set, to which others attach what is below. A route
// names its backends itself.
func (ev *schemaViolations) levelWritten(p effective.Pair) (gateway.Level, bool) {
	switch o := ev.change.Object().(type) {
	case *policykind.Policy:
		for _, e := range []*effective.Effective{p.After, p.Before} {
			if e == nil {
				continue
			}
			if i := slices.IndexFunc(e.Layers, func(l merge.Layer) bool { return e.Ref(l.Policy) == o.Ref() }); i >= 0 {
				return e.Level(e.Layers[i].Policy), true
			}
		}
		return 0, false
	case *gateway.Class:
		return gateway.LevelGatewayClass, true
	case *gateway.Gateway:
		return gateway.LevelGateway, true
	case *gateway.ListenerSet:
		return gateway.LevelListenerSet, true
	default:
		return 0, false
	}
}

// reportAll turns schema violations into findings.
func (ev *schemaViolations) reportAll() {
	if ev.skipped {
		ev.warn(api.ReasonNotRead, Finding{Advice: "their owners see what is wrong with them when they write them"},
			"effective policies with large policies of other namespaces below were not validated against the schema of their kind")
	}
	all := ev.violations.sorted(func(a, b *schemaViolation) int {
		return cmp.Or(
			cmp.Compare(btoi(a.before || a.below), btoi(b.before || b.below)), // what is denied comes first
			api.ComparePolicyKinds(a.kind.Ref(), b.kind.Ref()),
			strings.Compare(a.message, b.message),
			cmp.Compare(btoi(a.before), btoi(b.before)),
		)
	})
	for i, m := range all {
		if i == maxSchemaViolations {
			ev.reportForKind(m.kind, api.ReasonEffectiveInvalid, newly(m.before || m.below), Finding{
				What: fmt.Sprintf("effective policies violate the schema of their kind in %s", api.Plural(len(all)-i, "more way")),
			})
			return
		}
		ev.reportOne(m)
	}
}

func (ev *schemaViolations) reportOne(m *schemaViolation) {
	sources := sourcesOf(m.on)
	on, merged := pathsText(m.on, m.paths), "; it is merged from "+joinRefs(sources)
	short := fmt.Sprintf("the effective %s on %s violates its schema: %s", m.kind.Kind, on, m.message)
	f := Finding{
		What:   fmt.Sprintf("the effective %s on %s violates the schema of its kind: %s%s", m.kind.Kind, on, m.message, merged),
		Short:  shortText(short+merged, short, fmt.Sprintf("the effective %s violates its schema: %s", m.kind.Kind, m.message)),
		Advice: "edit one of them so that the result is valid",
	}
	if len(sources) == 1 {
		f.Advice = "edit it so that the rules left of it are valid"
	}
	switch {
	case m.before:
		f.What += "; not introduced by this write"
	case m.below:
		f.What += fmt.Sprintf("; warning only, since policies of other namespaces below %s cause it", ev.writtenRef())
	}
	if i := slices.IndexFunc(sources, func(s api.Ref) bool { return ev.policy == nil || s != ev.policy.Ref() }); i >= 0 {
		f.Policy = sources[i]
		f.Advice += fmt.Sprintf(", or ask the owner of %s", f.Policy.Key())
	}
	ev.reportForKind(m.kind, api.ReasonEffectiveInvalid, newly(m.before || m.below), f)
}

// sourcesOf returns the policies that have a rule in an effective policy, from the highest
// to the lowest.
func sourcesOf(e *effective.Effective) []api.Ref {
	var out []api.Ref
	for _, o := range e.Outcomes {
		if slices.ContainsFunc(e.Rules, func(r merge.Effective) bool { return r.From.Policy == o.Policy }) {
			out = append(out, e.Ref(o.Policy))
		}
	}
	return out
}
