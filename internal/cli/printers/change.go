package printers

import (
	api "overrule.dev/overrule/api/v1alpha1"
)

// diffValue is the length up to which a value is printed on one line of a diff.
const diffValue = 100

func changeTable(w *textWriter, l *api.ChangeList, objects []ChangedObject) {
	for _, o := range objects {
		items := changesOf(l, o)
		w.blankLine()
		w.line(w.changeHeading(o, items))
		for _, g := range GroupBy(items, changeKey) {
			c := g[0]
			for _, head := range w.pathHeadings(c.PolicyKind, pathsOf(g, func(c api.Change) []api.PathElement { return c.Path })) {
				w.line("  ", head)
			}
			for _, r := range c.Rules {
				w.writeRule("    ", "- ", red, r.Rule, r.Before)
				w.writeRule("    ", "+ ", green, r.Rule, r.After)
			}
		}
	}
}

func changeTree(w *textWriter, l *api.ChangeList, objects []ChangedObject) {
	root := &node{}
	for _, o := range objects {
		items := changesOf(l, o)
		top := root.add(w.changeHeading(o, items))
		for _, c := range items {
			at := top
			for _, e := range c.Path {
				at = at.child(w.paint(plain, elementName(e)))
			}
			at = at.add(c.PolicyKind.Kind)
			for _, r := range c.Rules {
				w.addRule(at, "- ", red, r.Rule, r.Before)
				w.addRule(at, "+ ", green, r.Rule, r.After)
			}
		}
	}
	w.nodes(root)
}

func changesOf(l *api.ChangeList, o ChangedObject) []api.Change {
	var out []api.Change
	for _, c := range l.Items {
		if c.Object == o.Object && c.Operation == o.Operation {
			out = append(out, c)
		}
	}
	return out
}

func (w *textWriter) changeHeading(o ChangedObject, items []api.Change) string {
	return w.paint(bold, o.Operation+" "+o.Object.String()) + ": " + api.ChangesSummary(len(items), api.ChangesText(items), o.Moved)
}

// writeRule writes the value of a rule before or after the change, if it has one.
func (w *textWriter) writeRule(indent, sign string, s style, rule string, v *api.RuleValue) {
	for _, text := range ruleValueLines(sign, rule, v) {
		w.line(indent, w.paint(s, text))
	}
}

func (w *textWriter) addRule(at *node, sign string, s style, rule string, v *api.RuleValue) {
	for _, text := range ruleValueLines(sign, rule, v) {
		at.add(w.paint(s, text))
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

// changeKey returns a key that is equal for changes that differ only in their path.
func changeKey(c api.Change) string {
	c.Path = nil
	return Compact(c)
}
