package guard

import (
	"fmt"
	"maps"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/merge"
)

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
