package guard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/conform"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/policykind"
)

// These check effective specs. One of each is enough for all guards: what it
// remembers is told apart by the kinds and results that it is about.
var conformity, conformityWithValues = conform.NewChecker(false), conform.NewChecker(true)

// conformity returns the checker whose messages show what the reader may read.
func (j *judge) conformity() *conform.Checker {
	if j.ShowValues {
		return conformityWithValues
	}
	return conformity
}

// misfit is what breaks the schema of a kind on a number of paths; the first
// stands for all.
type misfit struct {
	kind    *policykind.Kind
	message string
	before  bool // it did so before the write, too
	on      *effective.Effective
	paths   int
}

// misfitKey tells misfits apart.
type misfitKey struct {
	kind    api.PolicyKind
	message string
	before  bool
}

// conforms checks the effective spec of a path against its schema. What broke it
// before and is no worse now is told, and not denied.
func (j *judge) conforms(p effective.Pair) error {
	if p.Before != nil && p.Before.Result == p.After.Result {
		return nil
	}
	now, err := j.conformity().Check(p.After, j.budget)
	if err != nil {
		return fmt.Errorf("check effective policies against their definition: %w", err)
	}
	if now.Unchecked != "" {
		j.report(api.ReasonNotRead, api.Warn, Finding{What: now.Unchecked})
	}
	if len(now.Problems) == 0 {
		return nil
	}
	was, err := j.conformity().Check(p.Before, j.budget)
	if err != nil {
		return fmt.Errorf("check effective policies against their definition: %w", err)
	}
	for _, problem := range now.Problems {
		j.misfit(p.After, problem.Message, was.Has(problem))
	}
	return nil
}

func (j *judge) misfit(e *effective.Effective, message string, before bool) {
	if j.misfits == nil {
		j.misfits = make(map[misfitKey]*misfit)
	}
	k := misfitKey{e.Kind.Ref(), message, before}
	if j.misfits[k] == nil {
		j.misfits[k] = &misfit{kind: e.Kind, message: message, before: before, on: e}
	}
	j.misfits[k].paths++
}

// mostMisfits is how many are told one by one.
const mostMisfits = 20

// invalid turns what breaks its schema into findings.
func (j *judge) invalid() {
	var all []*misfit
	for _, m := range j.misfits {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b *misfit) int {
		return cmp.Or(
			cmp.Compare(btoi(a.before), btoi(b.before)), // what is denied comes first
			api.ComparePolicyKinds(a.kind.Ref(), b.kind.Ref()),
			strings.Compare(a.message, b.message),
		)
	})
	for i, m := range all {
		if i == mostMisfits {
			j.reportOf(m.kind, api.ReasonEffectiveInvalid, actionOf(m), Finding{
				What: fmt.Sprintf("effective policies break the schema of their kind in %s", plural(len(all)-i, "more way")),
			})
			return
		}
		j.misfitFinding(m)
	}
}

func actionOf(m *misfit) api.Action {
	if m.before {
		return api.Warn
	}
	return api.Deny
}

func (j *judge) misfitFinding(m *misfit) {
	sources := sourcesOf(m.on)
	f := Finding{
		What: fmt.Sprintf("the effective %s on %s breaks the schema of its kind: %s; it comes from %s",
			m.kind.Kind, somePaths(m.on, m.paths), m.message, listed(sources)),
		Short:  fmt.Sprintf("the effective %s breaks its schema: %s", m.kind.Kind, m.message),
		Advice: "edit one of them so that they fit together",
	}
	if len(sources) == 1 {
		f.Advice = "edit it so that what is left of it fits"
	}
	if m.before {
		f.What += "; that was so before"
	}
	for i := range sources {
		if j.policy == nil || sources[i] != j.policy.Ref() {
			f.Policy = &sources[i]
			break
		}
	}
	if f.Policy != nil {
		f.Advice += fmt.Sprintf(", or ask the owner of %s", f.Policy.Key())
	}
	j.reportOf(m.kind, api.ReasonEffectiveInvalid, actionOf(m), f)
}

// sourcesOf returns the policies that have a rule in an effective policy, from
// the highest to the lowest.
func sourcesOf(e *effective.Effective) []api.Ref {
	var out []api.Ref
	for _, o := range e.Outcomes {
		for _, r := range e.Rules {
			if r.From.Policy == o.Policy {
				out = append(out, e.Ref(o.Policy))
				break
			}
		}
	}
	return out
}

// mostSources is how many policies are named.
const mostSources = 4

func listed(refs []api.Ref) string {
	var names []string
	for _, ref := range refs[:min(len(refs), mostSources)] {
		names = append(names, ref.String())
	}
	switch more := len(refs) - len(names); {
	case more > 0:
		return strings.Join(names, ", ") + fmt.Sprintf(" and %d more", more)
	case len(names) == 1:
		return names[0]
	default:
		return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
	}
}
