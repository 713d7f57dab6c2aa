package guard

import (
	"cmp"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/merge"
)

// losses are the rules that overrides of higher policies take.
type losses struct {
	own      lossTally // of the policy that is written
	other    lossTally // that the write brings to other policies
	ownPaths int       // that the policy that is written is on
}

// lossTally adds up losses that are the same but for the path.
type lossTally struct {
	losses    map[lossKey]*loss
	max       int  // that are counted separately, 0 for all
	truncated bool // there are more
}

// maxLosses is how many losses of other policies are counted separately: few of them are
// reported at all, none is denied for, and there may be millions.
const maxLosses = 10_000

type lossKey struct {
	from        *merge.Policy
	rule        string
	to          *merge.Policy
	conditional bool
	before      bool // a conditional one took it before the write, too
	equal       bool // to the effective rule
	inForce     *merge.Policy
	whole       bool // lost with all others of the policy, which the other replaces
}

// loss is a rule lost on a number of paths; the first stands for all.
type loss struct {
	lossKey
	lost  merge.Lost
	on    *effective.Effective
	paths int
}

func (t *lossTally) add(e *effective.Effective, o *merge.Outcome, l merge.Lost, whole, before bool) {
	if t.losses == nil {
		t.losses = make(map[lossKey]*loss)
	}
	k := lossKey{o.Policy, l.Key.String(), l.To.Policy, l.To.Conditional, before, l.To.Conditional && l.Equal, l.InForce, whole}
	had := t.losses[k]
	switch {
	case had != nil:
		had.paths++
	case t.max == 0 || len(t.losses) < t.max:
		t.losses[k] = &loss{lossKey: k, lost: l, on: e, paths: 1}
	default:
		t.truncated = true
	}
}

// sorted returns the losses by policy, rule and what beat it.
func (t *lossTally) sorted() []*loss {
	out := make([]*loss, 0, len(t.losses))
	for _, l := range t.losses {
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b *loss) int {
		return cmp.Or(
			api.CompareRefs(a.on.Ref(a.from), b.on.Ref(b.from)),
			strings.Compare(a.rule, b.rule),
			api.CompareRefs(a.on.Ref(a.to), b.on.Ref(b.to)),
			cmp.Compare(btoi(a.conditional), btoi(b.conditional)),
			cmp.Compare(btoi(a.before), btoi(b.before)),
			cmp.Compare(btoi(a.equal), btoi(b.equal)),
			cmp.Compare(btoi(a.whole), btoi(b.whole)),
			cmp.Compare(nameOf(a.inForce), nameOf(b.inForce)),
		)
	})
	return out
}

func nameOf(p *merge.Policy) string {
	if p == nil {
		return ""
	}
	return p.Namespace + "/" + p.Name
}

// addRoute adds the fields of the route itself that an override newly takes, or
// takes again after they were edited.
func (ls *losses) addRoute(p effective.Pair) {
	own := p.After.Own()
	if own == nil {
		return
	}
	for _, l := range own.Lost {
		if l.To.Block == merge.Overrides && !routeLostBefore(p.Before, l) {
			ls.other.add(p.After, own, l, false, false)
		}
	}
}

// routeLostBefore reports whether the route's own fields lost the same value before.
func routeLostBefore(before *effective.Effective, l merge.Lost) bool {
	if before == nil || before.Own() == nil {
		return false
	}
	return slices.ContainsFunc(before.Own().Lost, func(was merge.Lost) bool {
		return was.Key == l.Key && was.To.Block == merge.Overrides && merge.Equal(was.Value, l.Value)
	})
}

// addOwn adds the rules of the policy that is written, the i-th on the path,
// that a higher override takes.
func (ls *losses) addOwn(p effective.Pair, i int) {
	o := &p.After.Outcomes[i]
	if len(o.Lost) == 0 {
		return
	}
	was, whole := indexBefore(p, o.Policy), o.ReplacedBy() != nil
	for _, l := range o.Lost {
		if takenByHigher(p.After, i, l) {
			old := lostToHigher(p.Before, was, l.Key)
			ls.own.add(p.After, o, l, whole && !l.To.Conditional, l.To.Conditional && old != nil && sameBlock(old.To, l.To))
		}
	}
}

// sameBlock reports whether one override took a rule before and after.
func sameBlock(before, after merge.Origin) bool {
	return before.Conditional == after.Conditional &&
		before.Policy.Namespace == after.Policy.Namespace && before.Policy.Name == after.Policy.Name
}

// addOther adds the rules of another policy that a higher override newly takes.
// A rule that had no effect before has none to lose.
func (ls *losses) addOther(p effective.Pair, i int) {
	if p.Before != nil && p.Before.Result == p.After.Result {
		return
	}
	o := &p.After.Outcomes[i]
	if len(o.Lost) == 0 {
		return
	}
	was, whole := indexBefore(p, o.Policy), o.ReplacedBy() != nil
	for _, l := range o.Lost {
		if takenByHigher(p.After, i, l) && (was < 0 || wasInForce(&p.Before.Outcomes[was], l.Key)) {
			ls.other.add(p.After, o, l, whole, false)
		}
	}
}

// takenByHigher reports whether an override of a higher policy took a rule of the i-th
// policy. That a lower policy's rule beats a default is no loss, in whichever block it is.
func takenByHigher(e *effective.Effective, i int, l merge.Lost) bool {
	if l.To.Block != merge.Overrides {
		return false
	}
	for k := range i {
		if e.Outcomes[k].Policy == l.To.Policy {
			return true
		}
	}
	return false
}

// indexBefore returns the place among the policies of the path before the change
// that a policy had there, or -1.
func indexBefore(p effective.Pair, policy *merge.Policy) int {
	if p.Before == nil {
		return -1
	}
	return slices.IndexFunc(p.Before.Outcomes, func(o merge.Outcome) bool {
		return o.Policy.Namespace == policy.Namespace && o.Policy.Name == policy.Name
	})
}

// wasInForce reports whether a rule of the policy took part and was not lost.
func wasInForce(o *merge.Outcome, k merge.Key) bool {
	if o.LostAt(k) != nil {
		return false
	}
	return slices.ContainsFunc(o.Policy.Blocks, func(b merge.Rules) bool { return b.At(k) != nil && o.BlockApplied(b.Block) })
}

// lostToHigher returns how a higher override took a rule of the i-th policy, or nil.
func lostToHigher(e *effective.Effective, i int, k merge.Key) *merge.Lost {
	if i < 0 {
		return nil
	}
	l := e.Outcomes[i].LostAt(k)
	if l == nil || !takenByHigher(e, i, *l) {
		return nil
	}
	return l
}
