package printers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Lengths to which values are cut in tables and trees.
const (
	shortValue = 60
	longValue  = 100
)

func writeEffective(w *textWriter, l *api.EffectivePolicyList) {
	w.request(l.Request)
	w.message(l.Message)
	if w.tree {
		w.nodes(effectiveNodes(l.Items))
	} else {
		w.table([]string{"KIND", "PATH", "RULE", "FROM", "BLOCK", "VALUE"}, effectiveRows(l.Items))
		w.table([]string{"KIND", "PATH", "FIELD", "FROM", "BLOCK", "VALUE", "NOTE"}, fieldRows(l.Items))
	}
	w.table([]string{"KIND", "POLICY", "STATE", "ENFORCED", "NOTE"}, outcomeRows(l.Outcomes))
}

func effectiveRows(items []api.EffectivePolicy) [][]cell {
	var rows [][]cell
	for _, item := range items {
		kind, path := plainCell(item.PolicyKind.Kind), plainCell(api.PathText(item.Path))
		if len(item.Rules) == 0 {
			rows = append(rows, []cell{kind, path, {none(item), dim}, plainCell(""), plainCell(""), plainCell("")})
		}
		for _, u := range item.Unprotected {
			rows = append(rows, []cell{kind, path, {"no " + u.Group, red}, plainCell(""), plainCell(""), {unprotectedText(u), dim}})
		}
		for _, r := range sortByItem(item.Rules) {
			rows = append(rows, []cell{kind, path, {ruleName(r), cyan}, plainCell(r.From.Key()), plainCell(r.Block), {shown(valueOf(item, r), r.Redacted, shortValue), dim}})
		}
	}
	return rows
}

// none stands for an effective policy without rules.
func none(item api.EffectivePolicy) string {
	if item.NotRead != "" {
		return "none: not read here"
	}
	return "none"
}

// sortByItem returns rules in the order of their items, if the spec is a list.
func sortByItem(rules []api.RuleOrigin) []api.RuleOrigin {
	out := slices.Clone(rules)
	slices.SortStableFunc(out, func(a, b api.RuleOrigin) int { return cmp.Compare(ptr.Deref(a.Item, 0), ptr.Deref(b.Item, 0)) })
	return out
}

// ruleName returns the name of a rule, or its item number if the spec is a list.
func ruleName(r api.RuleOrigin) string {
	if r.Item == nil {
		return r.Rule
	}
	return fmt.Sprintf("%d.", *r.Item+1)
}

func effectiveNodes(items []api.EffectivePolicy) *node {
	root := &node{}
	for _, item := range byPath(items) {
		at := root
		for _, e := range item.Path {
			at = at.child(paint(bold, elementName(e)))
		}
		effectiveNode(at.add(item.PolicyKind.Kind), item)
	}
	return root
}

func effectiveNode(at *node, item api.EffectivePolicy) {
	for _, r := range sortByItem(item.Rules) {
		sign := " ="
		if r.Item != nil {
			sign = ""
		}
		at.add(fmt.Sprintf("%s%s %s  %s", paint(cyan, ruleName(r)), sign, paint(plain, shown(valueOf(item, r), r.Redacted, shortValue)),
			paint(dim, "from "+policyName(r.From, r.Block))))
	}
	for _, u := range item.Unprotected {
		at.add(paint(red, "✗ no "+u.Group) + paint(dim, "  "+unprotectedText(u)))
	}
	fieldNodes(at, item)
	for _, p := range item.Policies {
		at.addAll(lossLines(p))
		if len(p.Lost) == 0 && p.State == api.Inactive {
			at.add(paint(dim, "– "+p.Policy.Key()+" does not apply: its condition is not met"))
		}
	}
	if len(item.Policies) > 0 && item.Policies[0].State == api.Unreached {
		at.add(paint(yellow, "– no request reaches this path"))
	}
	if len(at.children) == 0 {
		at.label += paint(dim, "  "+none(item))
	}
}

// unprotectedText says which rules that protect another policy replaces.
func unprotectedText(u api.LostProtection) string {
	verb := "is"
	if len(u.Rules) > 1 {
		verb = "are"
	}
	return fmt.Sprintf("%s's %s %s replaced by %s", u.Policy.Key(), strings.Join(u.Rules, ", "), verb, u.To.Key())
}

// lossLines returns the rules that a policy lost, in one line if another policy
// replaces all of it.
func lossLines(p api.PolicyOnPath) []string {
	if p.ReplacedBy != nil && p.Message == "" {
		return []string{paint(red, "✗ all rules") + paint(dim, fmt.Sprintf("  of %s, replaced as a whole by %s%s", p.Policy.Key(), p.ReplacedBy.Key(), lossNote(commonInForce(p.Lost), false)))}
	}
	var out []string
	for _, l := range p.Lost {
		text := fmt.Sprintf("  of %s, lost to %s%s", policyName(p.Policy, l.Block), policyName(l.To, l.ToBlock), lossNote(l.InForce, l.Equal))
		out = append(out, paint(red, "✗ "+l.Rule)+paint(dim, text))
	}
	if p.Message != "" {
		text := p.Policy.Key() + ": " + p.Message
		if p.ReplacedBy != nil {
			text += ", and " + p.ReplacedBy.Key() + " replaces it"
		}
		out = append(out, paint(dim, "– "+text))
	}
	return out
}

// lossNote names the policy that is in effect, if the one that won over a rule has lost it to
// another, and marks a rule that was lost to one of an equal value.
func lossNote(inForce *api.Ref, equal bool) string {
	out := ""
	if inForce != nil {
		out = "; in effect is " + inForce.Key()
	}
	if equal {
		out += " (equal value)"
	}
	return out
}

// commonInForce returns the policy that is in effect in place of every lost rule,
// nil if it is not the same one.
func commonInForce(lost []api.LostRule) *api.Ref {
	first := lost[0].InForce
	if first == nil || slices.ContainsFunc(lost, func(l api.LostRule) bool { return l.InForce == nil || *l.InForce != *first }) {
		return nil
	}
	return first
}

func outcomeRows(outcomes []api.Outcome) [][]cell {
	var rows [][]cell
	for _, o := range outcomes {
		rows = append(rows, []cell{
			plainCell(o.Policy.Kind), plainCell(o.Policy.Key()), {string(o.State), stateStyle(o.State)},
			plainCell(enforcedOn(o.Paths)), {outcomeNote(o), dim},
		})
	}
	return rows
}

// enforcedOn returns on how many of its paths a policy is enforced.
func enforcedOn(c api.PathCounts) string {
	if c.Total == 0 {
		return "no path"
	}
	switch reached := c.Total - c.Unreached; {
	case reached == 0:
		return api.Plural(c.Unreached, "path") + " unreached"
	case c.Unreached > 0:
		return fmt.Sprintf("%d/%s, %d unreached", c.Enforced, api.Plural(reached, "path"), c.Unreached)
	default:
		return fmt.Sprintf("%d/%s", c.Enforced, api.Plural(c.Total, "path"))
	}
}

func outcomeNote(o api.Outcome) string {
	var parts []string
	if o.Message != "" {
		parts = append(parts, o.Message)
	}
	for _, r := range o.ReplacedBy {
		parts = append(parts, "replaced by "+r.Policy.Key())
	}
	for _, l := range o.Lost {
		if l.Whole < l.Paths {
			parts = append(parts, fmt.Sprintf("%s lost to %s%s", l.Rule, l.To.Key(), lossNote(l.InForce, l.Equal)))
		}
	}
	return strings.Join(parts, ", ")
}
