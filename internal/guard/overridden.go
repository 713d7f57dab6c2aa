package guard

import (
	"fmt"
	"maps"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/merge"
)

// wholeLoss is a policy that another one replaces as a whole, on a number of paths.
type wholeLoss struct {
	from, to, inForce *merge.Policy
	paths             int
}

func (l *loss) wholeLoss() wholeLoss { return wholeLoss{l.from, l.to, l.inForce, l.paths} }

// countWholeLosses counts the rules that were lost together, where they are more than one.
func countWholeLosses(losses []*loss) map[wholeLoss]int {
	out := make(map[wholeLoss]int)
	for _, l := range losses {
		if l.whole {
			out[l.wholeLoss()]++
		}
	}
	maps.DeleteFunc(out, func(_ wholeLoss, n int) bool { return n == 1 })
	return out
}

// reportOwnLosses reports the rules of the policy that is written that a higher override
// takes.
func (ev *evaluation) reportOwnLosses() {
	losses := ev.losses.own.sorted()
	whole := countWholeLosses(losses)
	for _, l := range losses {
		n := whole[l.wholeLoss()]
		switch {
		case l.conditional && !l.equal:
			ev.reportConstraintViolated(l)
		case l.whole && n > 0:
			ev.reportOverridden(l, Finding{Rule: l.rule, Whole: true}, l.rule+" has", "overrides it")
			ev.reportOverridden(l, Finding{Whole: true}, fmt.Sprintf("all %d rules have", n), "replaces the policy as a whole")
		default:
			ev.reportOverridden(l, Finding{Rule: l.rule}, l.rule+" has", "overrides it")
		}
	}
}

// reportConstraintViolated reports a rule that a conditional override replaces or removes.
func (ev *evaluation) reportConstraintViolated(l *loss) {
	action := api.Deny
	if l.before {
		action = api.Warn
	}
	by := l.on.Ref(l.to)
	ev.report(api.ReasonConstraintViolated, action, Finding{
		Rule: l.rule, Policy: &by,
		What: fmt.Sprintf("%s: Invalid value: %s: not allowed by %s on %s (when: %s): %s",
			l.rule, compactJSON(l.lost.Value), by, overrideTarget(l), overrideCondition(l), ev.replacementText(l)),
		Short:  fmt.Sprintf("%s is not allowed by %s", l.rule, by),
		Advice: fmt.Sprintf("change it or ask the owner of %s", by.Key()),
	})
}

// overrideTarget names the object through which the override reaches the path.
func overrideTarget(l *loss) string {
	return l.on.Path.Element(l.on.Level(l.to)).String()
}

// overrideCondition returns the condition of the overrides block that beat the rule.
func overrideCondition(l *loss) string {
	for _, b := range l.to.Blocks {
		if b.Block == merge.Overrides && b.When != nil {
			return b.When.String()
		}
	}
	return ""
}

// replacementText says what is in force in place of the lost rule: the value that the
// override sets, and of a policy that overrides that one its name alone.
func (ev *evaluation) replacementText(l *loss) string {
	for _, e := range l.on.Rules {
		if e.Key == l.lost.Key && e.Value != nil {
			if e.From.Policy != l.to && !ev.guard.ShowValues {
				return "it would be replaced by the value of " + l.on.Ref(e.From.Policy).String()
			}
			return "it would be replaced by " + compactJSON(e.Value)
		}
	}
	return "it would be removed"
}

// reportOverridden reports rules of the policy that is written that have no effect.
func (ev *evaluation) reportOverridden(l *loss, f Finding, rules, overrides string) {
	by := l.on.Ref(l.to)
	on := ""
	if l.paths < ev.losses.ownPaths {
		on = fmt.Sprintf(" on %d of %s", l.paths, plural(ev.losses.ownPaths, "path"))
	}
	f.Policy = &by
	f.What = fmt.Sprintf("%s no effect%s: %s %s on %s", rules, on, by, overrides, overrideTarget(l))
	f.Advice = fmt.Sprintf("ask the owner of %s", by.Key())
	if l.inForce != nil {
		last := l.on.Ref(l.inForce)
		f.What += fmt.Sprintf(", and %s is in force there", last)
		f.Advice = fmt.Sprintf("ask the owners of %s and %s", by.Key(), last.Key())
	}
	ev.report(api.ReasonOverridden, api.Warn, f)
}

// maxOtherLosses is how many losses of other policies are reported one by one.
const maxOtherLosses = 20

// reportOtherLosses reports which rules of other policies lose their effect.
func (ev *evaluation) reportOtherLosses() {
	losses := ev.losses.other.sorted()
	whole, shown := countWholeLosses(losses), make(map[wholeLoss]bool)
	lines, rest := 0, 0
	for i, l := range losses {
		group := l.wholeLoss()
		if n := whole[group]; n > 0 && l.whole && !shown[group] && lines < maxOtherLosses {
			ev.reportOtherLoss(l, Finding{Whole: true}, fmt.Sprintf("all %d rules", n), "lose their effect", "replaces it as a whole")
			shown[group] = true
			lines++
		}
		together := l.whole && shown[group]
		switch {
		case i < maxOtherLosses:
			ev.reportOtherLoss(l, Finding{Rule: l.rule, Whole: together}, l.rule, "loses its effect", "overrides it")
			lines++
		case !together:
			rest++
		}
	}
	if rest > 0 {
		more := plural(rest, "more rule")
		if ev.losses.other.truncated {
			more = "more than " + more
		}
		ev.report(api.ReasonOverridden, api.Warn, Finding{What: more + " of other policies also lose their effect"})
	}
}

// reportOtherLoss reports what another policy loses.
func (ev *evaluation) reportOtherLoss(l *loss, f Finding, rules, lose, overrides string) {
	from := l.on.Ref(l.from)
	f.Policy = &from
	f.What = fmt.Sprintf("%s of %s %s on %s: %s %s", rules, from, lose, plural(l.paths, "path"), l.on.Ref(l.to), overrides)
	ev.report(api.ReasonOverridden, api.Warn, f)
}
