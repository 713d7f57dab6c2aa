package printers

import (
	"fmt"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
)

func writeExplanations(w *textWriter, l *api.ExplanationList) {
	w.request(l.Request)
	w.message(l.Message)
	w.nodes(w.explanationNodes(l))
}

func (w *textWriter) explanationNodes(l *api.ExplanationList) *node {
	root := &node{}
	for _, g := range GroupBy(l.Items, func(x *api.Explanation) { x.Path = nil }) {
		x := g[0]
		top := root.add(strings.Join(w.pathHeadings(x.PolicyKind, explanationPaths(g)), "\n"))
		for _, c := range x.Policies {
			top.add(w.contributionHeading(c)).addAll(w.contributionLines(c))
		}
		for _, r := range x.Rules {
			at := top.add(w.ruleLine(r))
			for _, lost := range r.Lost {
				at.add(w.lostLine(lost))
			}
		}
		top.addAll(w.notes(g))
	}
	return root
}

// message writes why there is nothing to show, a line for each object.
func (w *textWriter) message(text string) {
	for line := range strings.Lines(text) {
		w.line(w.paint(yellow, strings.TrimSuffix(line, "\n")))
	}
}

// notes returns the lines below the rules: bindings, weakened overrides and notes.
// The explanations differ only in their path.
func (w *textWriter) notes(alike []api.Explanation) []string {
	out := w.bindingLines(alike[0].Bindings, explanationPaths(alike))
	for _, weak := range alike[0].Weakened {
		out = append(out, w.weakenedLine(weak))
	}
	for _, n := range alike[0].Notes {
		out = append(out, w.paint(yellow, "note: "+n))
	}
	return out
}

// contributionHeading returns a policy, its target and its state.
func (w *textWriter) contributionHeading(c api.Contribution) string {
	at := elementName(c.Target)
	if c.Target.IsSection() {
		at += " of " + api.Ref{Namespace: c.Target.Namespace, Name: c.Target.Name}.Key()
	}
	return fmt.Sprintf("%s %s at %s: %s", c.Policy.Kind, w.paint(bold, c.Policy.Key()), w.paint(plain, at), w.paint(stateStyle(c.State), string(c.State)))
}

// contributionLines returns what a policy contributes to a path, with a line for
// each block and each lost rule.
func (w *textWriter) contributionLines(c api.Contribution) []string {
	var out []string
	for _, b := range c.Blocks {
		head := fmt.Sprintf("%s (%s)", b.Block, b.Strategy)
		if b.When != "" {
			head += fmt.Sprintf(" when %s", b.When)
		}
		if b.Redacted {
			head += " when " + redacted
		}
		if !b.TookPart {
			out = append(out, w.paint(dim, head+": does not apply, its condition is not met: "+strings.Join(b.Rules, ", ")))
			continue
		}
		out = append(out, w.paint(plain, head+": ")+w.paint(cyan, strings.Join(b.Rules, ", ")))
	}
	if len(c.Unset) > 0 {
		out = append(out, w.paint(plain, "unset: ")+w.paint(cyan, strings.Join(c.Unset, ", ")))
	}
	if c.Message != "" {
		out = append(out, w.paint(dim, c.Message))
	}
	if c.ReplacedBy != nil && len(c.Lost) > 0 {
		return append(out, w.paint(red, "replaced")+w.paint(plain, fmt.Sprintf(" as a whole by the %s of %s%s", blockName(c.Lost[0].ToBlock), *c.ReplacedBy, lossNote(commonInForce(c.Lost), false))))
	}
	for _, l := range c.Lost {
		out = append(out, w.paint(red, "lost "+l.Rule)+w.paint(plain, fmt.Sprintf(" to the %s of %s%s", blockName(l.ToBlock), l.To, lossNote(l.InForce, l.Equal))))
	}
	return out
}

// blockName returns the name of a block for use in a sentence.
func blockName(block string) string {
	switch block {
	case "bare":
		return "rules"
	case "unset":
		return "unset list"
	case "object":
		return "own field"
	default:
		return block
	}
}

func (w *textWriter) ruleLine(r api.ExplainedRule) string {
	if r.From == nil {
		return w.paint(cyan, r.Rule) + " is not in effect"
	}
	if r.Value == nil && !r.Redacted {
		return w.paint(cyan, r.Rule) + w.paint(plain, fmt.Sprintf(" is excluded by the %s of %s", blockName(r.Block), *r.From))
	}
	return fmt.Sprintf("%s = %s  %s", w.paint(cyan, r.Rule), w.paint(plain, shown(r.Value, r.Redacted, longValue)),
		w.paint(dim, fmt.Sprintf("from the %s of %s", blockName(r.Block), *r.From)))
}

func (w *textWriter) lostLine(l api.LostFrom) string {
	return w.paint(dim, fmt.Sprintf("not %s of %s: replaced by the %s of %s%s", shown(l.Value, l.Redacted, longValue), policyName(l.Policy, l.Block), blockName(l.ToBlock), l.To, lossNote(l.InForce, l.Equal)))
}

// weakenedLine returns which rule of another policy weakens a rule of an override.
func (w *textWriter) weakenedLine(r api.WeakenedRule) string {
	weakened, gate := fmt.Sprintf("%s of %s", r.Rule, r.Policy), fmt.Sprintf("%s of %s", r.ByRule, r.By)
	if r.How == "gate" {
		return w.paint(red, "weakened: ") + w.paint(plain, fmt.Sprintf("%s decides whether %s has an effect", gate, weakened))
	}
	return w.paint(red, "weakened: ") + w.paint(plain, fmt.Sprintf("%s is accepted instead of %s", gate, weakened))
}

func explanationPaths(items []api.Explanation) [][]api.PathElement {
	return pathsOf(items, func(x api.Explanation) []api.PathElement { return x.Path })
}
