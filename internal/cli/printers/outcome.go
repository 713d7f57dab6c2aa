package printers

import (
	"fmt"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
)

func writeOutcomes(w *textWriter, l *api.OutcomeList) {
	root := &node{}
	for _, o := range l.Items {
		root.add(outcomeHeading(o)).addAll(outcomeLines(o))
	}
	w.nodes(root)
}

func outcomeHeading(o api.Outcome) string {
	out := paint(bold, o.Policy.String()) + ": " + paint(stateStyle(o.State), string(o.State))
	if o.Message != "" {
		out += paint(plain, ": "+o.Message)
	}
	return out
}

// outcomeLines returns the targets of a policy, its number of paths and the rules
// that it lost.
func outcomeLines(o api.Outcome) []string {
	out := Texts(o.Targets, targetLine)
	if o.Redacted {
		out = append(out, paint(dim, "you are not allowed to get it: its targets are not shown, and only the paths of the question count"))
	}
	out = append(out, paint(plain, pathCounts(o.Paths)))
	for _, r := range o.ReplacedBy {
		out = append(out, paint(red, "replaced")+paint(plain, fmt.Sprintf(" as a whole by %s on %s", r.Policy, api.Plural(r.Paths, "path"))))
	}
	for _, l := range o.Lost {
		if n := l.Paths - l.Whole; n > 0 {
			out = append(out, paint(red, "lost "+l.Rule)+paint(plain, fmt.Sprintf(" to %s on %s%s", l.To, api.Plural(n, "path"), lossNote(l.InForce, l.Equal))))
		}
	}
	return out
}

func targetLine(t api.Target) string {
	name := t.Target.String()
	if t.Selector != "" {
		name = t.Target.Kind + " with " + t.Selector
	}
	if t.Section != "" {
		name += "#" + t.Section
	}
	if t.Port != 0 {
		name += fmt.Sprintf(" port %d", t.Port)
	}
	if t.AttachedBy != "" {
		name += " by " + t.AttachedBy
	}
	switch {
	case t.Accepted:
		return paint(plain, "target "+name+": ") + paint(green, "accepted")
	case t.By != nil:
		return paint(plain, "target "+name+": ") + paint(red, string(t.Reason)) + paint(plain, " with "+t.By.String())
	case t.Refused != "":
		return paint(plain, "target "+name+": ") + paint(red, string(t.Reason)) + paint(plain, ", "+t.Refused)
	default:
		return paint(plain, "target "+name+": ") + paint(red, string(t.Reason))
	}
}

// pathCounts returns the number of paths that a policy is on, by its state there.
func pathCounts(c api.PathCounts) string {
	out := []string{"on " + api.Plural(c.Total, "path")}
	for _, part := range []struct {
		n    int
		what string
	}{
		{c.Enforced, "enforced"}, {c.PartiallyEnforced, "partially enforced"},
		{c.Overridden, "overridden"}, {c.Inactive, "inactive"}, {c.Unreached, "not reached by requests"}, {c.NotRead, "more where it is not read"},
	} {
		if part.n > 0 {
			out = append(out, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	return strings.Join(out, ", ")
}
