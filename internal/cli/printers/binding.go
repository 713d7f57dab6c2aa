package printers

import (
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
)

// bindingLines returns a line for each rule that binds by triggers: what it is
// bound to.
func bindingLines(all []api.Binding, paths [][]api.PathElement) []string {
	rule, several := routeRule(paths)
	return Texts(all, func(b api.Binding) string { return bindingLine(b, rule, several) })
}

// bindingLine returns the state of a rule on a rule of a route, or on several if
// it is the same on all.
func bindingLine(b api.Binding, rule string, several bool) string {
	head, on := paint(cyan, b.Rule)+paint(plain, " of "+policyName(b.From, b.Block)), rule
	if several {
		on = "each of these rules"
	}
	switch {
	case b.State == api.BindingBound:
		return head + paint(green, " is bound") + paint(plain, " to "+on+matchedBy(b, " by ")+alsoMatches(b))
	case b.State == api.BindingShadowed:
		return head + paint(yellow, " is shadowed") + paint(plain, " on "+on+" by "+b.ShadowedBy+", which is first by name"+matchedBy(b, "; it matches "))
	case len(b.Hostnames) > 0:
		return head + paint(yellow, " is not bound") + paint(plain, " to "+on+": the route does not serve "+strings.Join(b.Hostnames, ", "))
	case several:
		return head + paint(yellow, " is not bound") + paint(plain, " to any of these rules: its triggers select none of their matches")
	default:
		return head + paint(yellow, " is not bound") + paint(plain, " to "+on+": its triggers select none of its matches")
	}
}

// matchedBy returns the matches that the triggers select, and their hostnames.
func matchedBy(b api.Binding, by string) string {
	if b.Redacted {
		return ""
	}
	if len(b.By) == 0 {
		return ": it has no triggers"
	}
	out := by + strings.Join(b.By, ", ")
	if len(b.Hostnames) > 0 {
		out += " for requests to " + strings.Join(b.Hostnames, ", ")
	}
	return out
}

// alsoMatches returns the matches to which a rule applies although its triggers do
// not select them.
func alsoMatches(b api.Binding) string {
	if len(b.AlsoMatches) == 0 {
		return ""
	}
	return "; also applies to " + strings.Join(b.AlsoMatches, ", ") + ", which its triggers do not select"
}

// routeRule returns the name of the route rule of the paths, and whether they have
// more than one.
func routeRule(paths [][]api.PathElement) (name string, several bool) {
	name = "the path"
	rules := make(map[string]bool)
	for _, path := range paths {
		for _, e := range path {
			if strings.HasSuffix(e.Kind, "RouteRule") {
				if len(rules) == 0 {
					name = e.SectionText()
				}
				rules[e.String()] = true
			}
		}
	}
	return name, len(rules) > 1
}
