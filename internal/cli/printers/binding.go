package printers

import (
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
)

// bindings says what rules that bind by triggers are bound to, a line for each.
func (w *textWriter) bindingLines(all []api.Binding, paths [][]api.PathElement) []string {
	rule, several := routeRule(paths)
	var out []string
	for _, b := range all {
		out = append(out, w.bindingLine(b, rule, several))
	}
	return out
}

// binding says what became of a rule on a rule of a route, or likewise on several.
func (w *textWriter) bindingLine(b api.Binding, rule string, several bool) string {
	head, on := w.paint(cyan, b.Rule)+w.paint(plain, " of "+policyName(b.From, b.Block)), rule
	if several {
		on = "each of these rules"
	}
	switch {
	case b.State == api.BindingBound:
		return head + w.paint(green, " is bound") + w.paint(plain, " to "+on+matchedBy(b, " by ")+alsoMatches(b))
	case b.State == api.BindingShadowed:
		return head + w.paint(yellow, " is shadowed") + w.paint(plain, " on "+on+" by "+b.ShadowedBy+", which comes first by name"+matchedBy(b, "; it matches by "))
	case len(b.Hostnames) > 0:
		return head + w.paint(yellow, " is not bound") + w.paint(plain, " to "+on+": no request to "+strings.Join(b.Hostnames, ", ")+" comes this way")
	case several:
		return head + w.paint(yellow, " is not bound") + w.paint(plain, " to any of these rules: its triggers choose no match of them")
	default:
		return head + w.paint(yellow, " is not bound") + w.paint(plain, " to "+on+": its triggers choose no match of it")
	}
}

// chosenBy names the matches that the triggers choose, and for which hostnames.
func matchedBy(b api.Binding, by string) string {
	if len(b.By) == 0 {
		return ": it has no triggers"
	}
	out := by + strings.Join(b.By, ", ")
	if len(b.Hostnames) > 0 {
		out += " for requests to " + strings.Join(b.Hostnames, ", ")
	}
	return out
}

// besides names what a rule holds for though its triggers do not ask for it.
func alsoMatches(b api.Binding) string {
	if len(b.AlsoMatches) == 0 {
		return ""
	}
	return "; it holds for " + strings.Join(b.AlsoMatches, ", ") + ", too"
}

// routeRule names the rule of the route that paths have, and reports whether they
// have several.
func routeRule(paths [][]api.PathElement) (name string, several bool) {
	var rules []api.PathElement
	for _, path := range paths {
		for _, e := range path {
			if strings.HasSuffix(e.Kind, "RouteRule") && !slices.ContainsFunc(rules, func(r api.PathElement) bool { return sameRule(r, e) }) {
				rules = append(rules, e)
			}
		}
	}
	if len(rules) == 0 {
		return "the path", false
	}
	return sectionName(rules[0]), len(rules) > 1
}

func sameRule(a, b api.PathElement) bool {
	return a.Kind == b.Kind && a.Namespace == b.Namespace && a.Name == b.Name && a.Section == b.Section && a.Member == b.Member
}
