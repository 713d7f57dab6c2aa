package printers

import (
	api "overrule.dev/overrule/api/v1alpha1"
)

// diffValue is the length up to which a value is printed on one line of a diff.
const diffValue = 100

// changeNodes returns the changes of each object: in a tree below their paths, else those that
// differ only in their path once.
func (w *textWriter) changeNodes(l *api.ChangeList, objects []api.Verdict) *node {
	root := &node{}
	for _, o := range objects {
		items := changesOf(l, o)
		top := root.add(changeHeading(o, items))
		if w.tree {
			for _, c := range items {
				at := top
				for _, e := range c.Path {
					at = at.child(paint(plain, elementName(e)))
				}
				addRules(at.add(c.PolicyKind.Kind), c)
			}
			continue
		}
		for _, g := range GroupBy(items, func(c *api.Change) { c.Path = nil }) {
			at := top
			for _, head := range pathHeadings(g[0].PolicyKind, pathsOf(g, func(c api.Change) []api.PathElement { return c.Path })) {
				at = top.add(head)
			}
			addRules(at, g[0])
		}
	}
	return root
}

func changesOf(l *api.ChangeList, o api.Verdict) []api.Change {
	var out []api.Change
	for _, c := range l.Items {
		if c.Object == o.Object && c.Operation == o.Operation {
			out = append(out, c)
		}
	}
	return out
}

func changeHeading(o api.Verdict, items []api.Change) string {
	return paint(bold, o.Operation+" "+o.Object.String()) + ": " + api.ChangesSummary(len(items), api.ChangesText(items), o.MovedText())
}

// addRules adds the values of the rules before and after a change, as far as they have one.
func addRules(at *node, c api.Change) {
	for _, r := range c.Rules {
		for _, text := range ruleValueLines("- ", r.Rule, r.Before) {
			at.add(paint(red, text))
		}
		for _, text := range ruleValueLines("+ ", r.Rule, r.After) {
			at.add(paint(green, text))
		}
	}
}

func ruleValueLines(sign, rule string, v *api.RuleValue) []string {
	if v == nil {
		return nil
	}
	return RuleLines(sign, rule, v, Lines(v.Value, diffValue))
}

// RuleLines returns the lines of a diff for the value of a rule, of which value has the lines.
func RuleLines(sign, rule string, v *api.RuleValue, value []string) []string {
	from := "  from " + v.From.Kind + " " + policyName(v.From, v.Block)
	if v.Redacted {
		value = []string{redacted}
	}
	if len(value) == 1 {
		return []string{sign + rule + " = " + value[0] + from}
	}
	out := []string{sign + rule + " =" + from}
	for _, l := range value {
		out = append(out, sign+"  "+l)
	}
	return out
}
