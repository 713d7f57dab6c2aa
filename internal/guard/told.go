package guard

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cel"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/merge"
)

// tally adds up losses that are the same but for the path.
type tally struct {
	losses map[lossKey]*loss
	most   int  // that are told apart, 0 for all
	beyond bool // there are more
}

// mostLosses is how many losses of other policies are told apart: few of them are
// told at all, none is denied for, and there may be millions.
const mostLosses = 10_000

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

func (t *tally) add(e *effective.Effective, o *merge.Outcome, l merge.Lost, whole, before bool) {
	if t.losses == nil {
		t.losses = make(map[lossKey]*loss)
	}
	k := lossKey{o.Policy, l.Key.String(), l.To.Policy, l.To.Conditional, before, l.To.Conditional && l.Equal, l.InForce, whole}
	had := t.losses[k]
	switch {
	case had != nil:
		had.paths++
	case t.most == 0 || len(t.losses) < t.most:
		t.losses[k] = &loss{lossKey: k, lost: l, on: e, paths: 1}
	default:
		t.beyond = true
	}
}

// sorted returns the losses by policy, rule and what beat it.
func (t *tally) sorted() []*loss {
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

// together is a policy that another one replaces whole, on a number of paths.
type together struct {
	from, to, inForce *merge.Policy
	paths             int
}

func (l *loss) together() together { return together{l.from, l.to, l.inForce, l.paths} }

// wholes counts the rules that were lost together, where they are more than one.
func wholes(losses []*loss) map[together]int {
	out := make(map[together]int)
	for _, l := range losses {
		if l.whole {
			out[l.together()]++
		}
	}
	maps.DeleteFunc(out, func(_ together, n int) bool { return n == 1 })
	return out
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// finish turns what was counted on the paths into findings.
func (j *judge) finish(ctx context.Context) error {
	j.noPath()
	j.ownLose()
	j.othersLose()
	may := &rights{judge: j, ctx: ctx, known: make(map[api.Ref]bool)}
	if err := j.bindings(may); err != nil {
		return err
	}
	j.unmet()
	j.unevaluated()
	j.invalid()
	j.blast()
	return j.overridesLost(may)
}

// ownLose finds the rules of the policy being written that a higher override takes.
func (j *judge) ownLose() {
	losses := j.own.sorted()
	whole := wholes(losses)
	for _, l := range losses {
		n := whole[l.together()]
		switch {
		case l.conditional && !l.equal:
			j.violated(l)
		case l.whole && n > 0:
			j.overridden(l, Finding{Rule: l.rule, Whole: true}, l.rule+" has", "overrides it")
			j.overridden(l, Finding{Whole: true}, fmt.Sprintf("all %d rules have", n), "replaces the policy as a whole")
		default:
			j.overridden(l, Finding{Rule: l.rule}, l.rule+" has", "overrides it")
		}
	}
}

// subject names what is being written; its name may be yet to be generated.
func subject(c Change) string {
	if ref := c.Object().Ref(); ref.Name != "" {
		return ref.String()
	}
	return "this"
}

// violated finds a rule that a conditional override replaces or removes.
func (j *judge) violated(l *loss) {
	action := api.Deny
	if l.before {
		action = api.Warn
	}
	by := l.on.Ref(l.to)
	j.report(api.ReasonConstraintViolated, action, Finding{
		Rule: l.rule, Policy: &by,
		What: fmt.Sprintf("%s: %s is not what %s allows on %s (when: %s): %s",
			l.rule, compact(l.lost.Value), by, where(l), when(l), j.instead(l)),
		Short:  fmt.Sprintf("%s is not what %s allows", l.rule, by),
		Advice: fmt.Sprintf("change it or ask the owner of %s", by.Key()),
	})
}

// where names the object through which the override reaches the path.
func where(l *loss) string {
	return l.on.Path.Element(l.on.Level(l.to)).String()
}

// when returns the condition of the overrides block that beat the rule.
func when(l *loss) string {
	for _, b := range l.to.Blocks {
		if b.Block == merge.Overrides && b.When != nil {
			return b.When.String()
		}
	}
	return ""
}

// instead says what is in force in place of the lost rule: the value that the
// override sets, and of a policy that overrides that one its name alone.
func (j *judge) instead(l *loss) string {
	for _, e := range l.on.Rules {
		if e.Key == l.lost.Key && e.Value != nil {
			if e.From.Policy != l.to && !j.ShowValues {
				return "it would be replaced by the value of " + l.on.Ref(e.From.Policy).String()
			}
			return "it would be replaced by " + compact(e.Value)
		}
	}
	return "it would be removed"
}

// compact returns a value as JSON on one line, cut where it gets long.
func compact(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return "a value that cannot be shown"
	}
	return clipped(string(data))
}

// clipped cuts a text that a writer made where it gets long for a message.
func clipped(text string) string {
	const most = 512
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// overridden tells that rules of the policy being written have no effect.
func (j *judge) overridden(l *loss, f Finding, rules, overrides string) {
	by := l.on.Ref(l.to)
	on := ""
	if l.paths < j.ownPaths {
		on = fmt.Sprintf(" on %d of %s", l.paths, plural(j.ownPaths, "path"))
	}
	f.Policy = &by
	f.What = fmt.Sprintf("%s no effect%s: %s %s on %s", rules, on, by, overrides, where(l))
	f.Advice = fmt.Sprintf("ask the owner of %s", by.Key())
	if l.inForce != nil {
		last := l.on.Ref(l.inForce)
		f.What += fmt.Sprintf(", and %s is in force in the end", last)
		f.Advice = fmt.Sprintf("ask the owners of %s and %s", by.Key(), last.Key())
	}
	j.report(api.ReasonOverridden, api.Warn, f)
}

// mostLosers is how many losses of other policies are told one by one.
const mostLosers = 20

// othersLose tells whose rules the write newly costs their effect.
func (j *judge) othersLose() {
	losses := j.others.sorted()
	whole, shown := wholes(losses), make(map[together]bool)
	lines, rest := 0, 0
	for i, l := range losses {
		group := l.together()
		if n := whole[group]; n > 0 && l.whole && !shown[group] && lines < mostLosers {
			j.othersLost(l, Finding{Whole: true}, fmt.Sprintf("all %d rules", n), "lose their effect", "replaces it as a whole")
			shown[group] = true
			lines++
		}
		together := l.whole && shown[group]
		switch {
		case i < mostLosers:
			j.othersLost(l, Finding{Rule: l.rule, Whole: together}, l.rule, "loses its effect", "overrides it")
			lines++
		case !together:
			rest++
		}
	}
	if rest > 0 {
		more := plural(rest, "more rule")
		if j.others.beyond {
			more = "more than " + more
		}
		j.report(api.ReasonOverridden, api.Warn, Finding{What: more + " of other policies lose their effect, too"})
	}
}

// othersLost tells what another policy loses.
func (j *judge) othersLost(l *loss, f Finding, rules, lose, overrides string) {
	from := l.on.Ref(l.from)
	f.Policy = &from
	f.What = fmt.Sprintf("%s of %s %s on %s: %s %s", rules, from, lose, plural(l.paths, "path"), l.on.Ref(l.to), overrides)
	j.report(api.ReasonOverridden, api.Warn, f)
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// notes tells of conditions that could not be evaluated, or that name a key
// that the policies below left out: on the paths of the policy being written
// always, else where the write brings them.
func (j *judge) notes(p effective.Pair) {
	if len(p.After.Notes) == 0 {
		return
	}
	own := j.policy != nil && slices.ContainsFunc(p.After.Outcomes, func(o merge.Outcome) bool { return o.Policy == &j.policy.Policy })
	for _, n := range p.After.Notes {
		if !own && noted(p.Before, n) {
			continue
		}
		by := p.After.Ref(n.Policy)
		j.report(api.ReasonConditionSkipped, api.Warn, Finding{Policy: &by, What: fmt.Sprintf("%s (when: %s)", p.After.NoteText(j.shown(n)), n.When)})
	}
}

// shown returns a note without what depends on values that the condition reads:
// they are of policies that its writer may not be allowed to read, or the reader is
// not allowed to read the policies above.
func (j *judge) shown(n merge.Note) merge.Note {
	if j.ShowValues {
		return n
	}
	if n.Answer.Err != nil {
		n.Answer.Err = cel.WithoutValues(n.When.String(), n.Answer.Err)
	} else if !cel.NamesKeys(n.When.String()) {
		n.Answer.Missing = "a key"
	}
	return n
}

// noted reports whether the same was to be told before.
func noted(before *effective.Effective, n merge.Note) bool {
	return before != nil && slices.ContainsFunc(before.Notes, func(o merge.Note) bool {
		return o.Policy == n.Policy && o.Block == n.Block && o.Answer.Missing == n.Answer.Missing && (o.Answer.Err == nil) == (n.Answer.Err == nil)
	})
}

func (j *judge) judgement() *Decision {
	return &Decision{
		Change:  j.change,
		Denials: j.found.by(api.Deny), Warnings: j.found.by(api.Warn), Audits: j.found.by(api.Audit),
		Changes: api.Changes{Paths: j.paths.count(), Namespaces: j.namespaces.count()},
		After:   j.after,
		Cut:     j.cut,
	}
}
