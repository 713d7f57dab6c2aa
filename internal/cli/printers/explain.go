package printers

import (
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
)

func writeExplanations(w *textWriter, l *api.ExplanationList) {
	w.request(l.Request)
	w.message(l.Message)
	w.nodes(explanationNodes(l))
}

func explanationNodes(l *api.ExplanationList) *node {
	root := &node{}
	for _, g := range GroupBy(l.Items, func(x *api.Explanation) { x.Path = nil }) {
		x := g[0]
		top := root.add(strings.Join(pathHeadings(x.PolicyKind, explanationPaths(g)), "\n"))
		for _, c := range x.Policies {
			top.add(contributionHeading(c)).addAll(contributionLines(c))
		}
		for _, r := range x.Rules {
			top.add(ruleLine(r)).addAll(Texts(r.Lost, lostLine))
		}
		top.addAll(notes(g))
	}
	return root
}

// message writes why there is nothing to show, a line for each object.
func (w *textWriter) message(text string) {
	for line := range strings.Lines(text) {
		w.line(paint(yellow, strings.TrimSuffix(line, "\n")))
	}
}

// notes returns the lines below the rules: bindings, weakened overrides and notes.
// The explanations differ only in their path.
func notes(alike []api.Explanation) []string {
	x := alike[0]
	return slices.Concat(bindingLines(x.Bindings, explanationPaths(alike)), Texts(x.Weakened, weakenedLine),
		Texts(x.Notes, func(n string) string { return paint(yellow, "note: "+n) }))
}

// contributionHeading returns a policy, its target and its state.
func contributionHeading(c api.Contribution) string {
	at := elementName(c.Target)
	if c.Target.IsSection() {
		at += " of " + api.Ref{Namespace: c.Target.Namespace, Name: c.Target.Name}.Key()
	}
	return fmt.Sprintf("%s %s at %s: %s", c.Policy.Kind, paint(bold, c.Policy.Key()), paint(plain, at), paint(stateStyle(c.State), string(c.State)))
}

// contributionLines returns what a policy contributes to a path, with a line for
// each block and each lost rule.
func contributionLines(c api.Contribution) []string {
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
			out = append(out, paint(dim, head+": does not apply, its condition is not met: "+strings.Join(b.Rules, ", ")))
			continue
		}
		out = append(out, paint(plain, head+": ")+paint(cyan, strings.Join(b.Rules, ", ")))
	}
	if len(c.Unset) > 0 {
		out = append(out, paint(plain, "unset: ")+paint(cyan, strings.Join(c.Unset, ", ")))
	}
	if c.Message != "" {
		out = append(out, paint(dim, c.Message))
	}
	if c.ReplacedBy != nil && len(c.Lost) > 0 {
		return append(out, paint(red, "replaced")+paint(plain, fmt.Sprintf(" as a whole by the %s of %s%s", blockName(c.Lost[0].ToBlock), *c.ReplacedBy, lossNote(commonInForce(c.Lost), false))))
	}
	for _, l := range c.Lost {
		out = append(out, paint(red, "lost "+l.Rule)+paint(plain, fmt.Sprintf(" to the %s of %s%s", blockName(l.ToBlock), l.To, lossNote(l.InForce, l.Equal))))
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

func ruleLine(r api.ExplainedRule) string {
	if r.From == nil {
		return paint(cyan, r.Rule) + " is not in effect"
	}
	if r.Value == nil && !r.Redacted {
		return paint(cyan, r.Rule) + paint(plain, fmt.Sprintf(" is excluded by the %s of %s", blockName(r.Block), *r.From))
	}
	return fmt.Sprintf("%s = %s  %s", paint(cyan, r.Rule), paint(plain, shown(r.Value, r.Redacted, longValue)),
		paint(dim, fmt.Sprintf("from the %s of %s", blockName(r.Block), *r.From)))
}

func lostLine(l api.LostFrom) string {
	return paint(dim, fmt.Sprintf("not %s of %s: replaced by the %s of %s%s", shown(l.Value, l.Redacted, longValue), policyName(l.Policy, l.Block), blockName(l.ToBlock), l.To, lossNote(l.InForce, l.Equal)))
}

// weakenedLine returns which rule of another policy weakens a rule of an override.
func weakenedLine(r api.WeakenedRule) string {
	weakened, gate := fmt.Sprintf("%s of %s", r.Rule, r.Policy), fmt.Sprintf("%s of %s", r.ByRule, r.By)
	if r.How == "gate" {
		return paint(red, "weakened: ") + paint(plain, fmt.Sprintf("%s decides whether %s has an effect", gate, weakened))
	}
	return paint(red, "weakened: ") + paint(plain, fmt.Sprintf("%s is accepted instead of %s", gate, weakened))
}

func explanationPaths(items []api.Explanation) [][]api.PathElement {
	return pathsOf(items, func(x api.Explanation) []api.PathElement { return x.Path })
}
