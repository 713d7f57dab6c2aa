package guard

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cel"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
)

// needs is what the constraints on the paths of one write come to.
type needs struct {
	// judged is what constraints say of folds, where it depends on nothing else.
	judged map[judgedKey][]constraint.Unmet
	// unmet adds up what is the same but for the path.
	unmet map[unmetKey]*unmetTally
	// spare is left for looking at paths on which nothing changes.
	spare spare
}

type judgedKey struct {
	constraint *constraint.Constraint
	result     *merge.Result
}

type unmetKey struct {
	constraint  *constraint.Constraint
	at, message string
	before      bool // it was so before the write, and gets no worse
}

// unmetTally is a demand that is not met on a number of paths; the first stands
// for all.
type unmetTally struct {
	unmetKey
	rule  string
	on    *effective.Effective
	paths int
}

// mostSpare is what looking at paths on which nothing changes may cost, in units
// of CEL cost: it is for a warning alone, and must not use up the budget.
const mostSpare = 100_000

var errSpare = errors.New("nothing is left for paths that do not change")

// spare is a meter that ends before the budget does.
type spare struct {
	spent  uint64
	budget *effective.Budget
}

// Spend implements merge.Meter.
func (s *spare) Spend(by *merge.Policy, cost uint64) error {
	if s.spent += cost; s.spent > mostSpare {
		return errSpare
	}
	return s.budget.Spend(by, cost)
}

// constrained returns the kinds whose paths without a policy are to be judged,
// too: a policy changes nothing on those of other kinds.
func (j *judge) constrained() []api.PolicyKind {
	return slices.DeleteFunc(j.after.Constrained(), func(k api.PolicyKind) bool { return !j.mayMatter(k) })
}

// mayMatter reports whether the write may change effective policies of a kind,
// or their paths.
func (j *judge) mayMatter(k api.PolicyKind) bool {
	p, ok := j.change.Object().(*policykind.Policy)
	return !ok || p.Kind.Ref() == k
}

// requirements judges the constraints on a path: what the write introduces is
// what the constraint's enforcement says, what was so before and gets no worse
// is told.
func (j *judge) requirements(p effective.Pair) error {
	all := j.after.Constraints(p.After.Kind.Ref())
	if len(all) == 0 || !j.mayMatter(p.After.Kind.Ref()) {
		return nil
	}
	var s *sides
	for _, c := range all {
		if !c.On(&p.After.Path, j.after) {
			continue
		}
		if s == nil {
			s = j.sides(p)
		}
		if err := j.requirement(c, p, s); err != nil {
			return err
		}
	}
	return nil
}

func (j *judge) requirement(c *constraint.Constraint, p effective.Pair, s *sides) error {
	wasOn := p.Before != nil && c.On(&p.Before.Path, j.before)
	if wasOn && s.same(c) {
		return j.asBefore(c, p, s)
	}
	now, err := j.evaluate(c, p.After, s.after, j.budget)
	if err != nil || len(now) == 0 {
		return err
	}
	var was []constraint.Unmet
	if wasOn {
		if was, err = j.evaluate(c, p.Before, s.before, j.budget); err != nil {
			return err
		}
	}
	for _, u := range now {
		i := slices.IndexFunc(was, func(w constraint.Unmet) bool { return w.At == u.At })
		j.book(c, p.After, u, i >= 0 && !u.Worse(was[i]))
	}
	return nil
}

// asBefore tells what is not met on a path on which nothing changes, as long as
// that costs little.
func (j *judge) asBefore(c *constraint.Constraint, p effective.Pair, s *sides) error {
	if j.needs.spare.spent > mostSpare {
		return nil
	}
	j.needs.spare.budget = j.budget
	now, err := j.evaluate(c, p.After, s.after, &j.needs.spare)
	if errors.Is(err, errSpare) {
		return nil
	}
	for _, u := range now {
		j.book(c, p.After, u, true)
	}
	return err
}

// evaluate asks a constraint once for all paths that share a fold, if it reads
// nothing but what is folded.
func (j *judge) evaluate(c *constraint.Constraint, e *effective.Effective, on *cel.Variables, m merge.Meter) ([]constraint.Unmet, error) {
	if c.Reads("path") || c.Reads("origins") || c.Reads("before") {
		found, err := c.Evaluate(on, m)
		if err != nil {
			return nil, &askingError{c.Ref(), err}
		}
		return found, nil
	}
	at := judgedKey{c, e.Result}
	if known, ok := j.needs.judged[at]; ok {
		return known, nil
	}
	found, err := c.Evaluate(on, m)
	if err != nil {
		return nil, &askingError{c.Ref(), err}
	}
	if j.needs.judged == nil {
		j.needs.judged = make(map[judgedKey][]constraint.Unmet)
	}
	j.needs.judged[at] = found
	return found, nil
}

func (j *judge) book(c *constraint.Constraint, e *effective.Effective, u constraint.Unmet, before bool) {
	k := unmetKey{c, u.At, u.Message, before}
	if j.needs.unmet == nil {
		j.needs.unmet = make(map[unmetKey]*unmetTally)
	}
	if j.needs.unmet[k] == nil {
		j.needs.unmet[k] = &unmetTally{unmetKey: k, rule: u.Rule, on: e}
	}
	j.needs.unmet[k].paths++
}

// mostUnmet is how many violations of one demand are told one by one: a message
// may differ from path to path.
const mostUnmet = 10

// unmet turns the constraints that are violated into findings.
func (j *judge) unmet() {
	all := slices.SortedFunc(maps.Values(j.needs.unmet), compareUnmet)
	for len(all) > 0 {
		same := 1
		for same < len(all) && sameDemand(all[0], all[same]) {
			same++
		}
		j.tell(all[:same])
		all = all[same:]
	}
}

func compareUnmet(a, b *unmetTally) int {
	return cmp.Or(
		api.CompareRefs(a.constraint.Ref(), b.constraint.Ref()),
		cmp.Compare(btoi(a.before), btoi(b.before)),
		strings.Compare(a.at, b.at),
		strings.Compare(a.message, b.message),
	)
}

func sameDemand(a, b *unmetTally) bool {
	return a.constraint.Ref() == b.constraint.Ref() && a.at == b.at && a.before == b.before
}

// tell reports violations of one demand.
func (j *judge) tell(all []*unmetTally) {
	for i, t := range all {
		ref := t.constraint.Ref()
		f := Finding{Rule: t.rule, Policy: &ref}
		if i == mostUnmet {
			paths := 0
			for _, rest := range all[i:] {
				paths += rest.paths
			}
			f.What = fmt.Sprintf("%s of %s is not met on %s, either", t.at, ref, plural(paths, "more path"))
		} else {
			f.What, f.Short = fmt.Sprintf("%s (%s on %s)", t.message, ref, somePaths(t.on, t.paths)), t.message
		}
		action := t.constraint.Enforcement
		switch {
		case !t.before:
			f.Advice = fmt.Sprintf("change what leads to it, or ask the owner of %s", ref)
		case action == api.Deny:
			action = api.Warn
			fallthrough
		default:
			f.What += ": it was so before, and gets no worse"
			if f.Short != "" {
				f.Short += fmt.Sprintf(" (%s): it was so before, and gets no worse", ref)
			}
		}
		j.report(api.ReasonRequirementUnmet, action, f)
		if i == mostUnmet {
			return
		}
	}
}
