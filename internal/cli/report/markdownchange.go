package report

import (
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/printers"
)

const (
	// shortValue is the length up to which a value is shown on one line.
	shortValue = 100
	// valueLines and valueLine are the number of lines of a longer value, and their
	// length, in characters.
	valueLines = 100
	valueLine  = 500
	// listedPaths is the number of paths of a group that are listed.
	listedPaths = 20
	// listedCauses is the number of objects that are named as the cause of a change.
	listedCauses = 5
)

// changeGroup is a set of paths with equal changes.
type changeGroup []Change

// changes returns the changed paths, in at most limit bytes, and the number of those that
// do not fit. Paths with equal changes are shown together.
func (r *Report) changes(limit int) (string, int) {
	groups := printers.GroupBy(r.Changes, func(c *Change) {
		c.Path, c.Namespace, c.Object, c.Operation, c.Causes, c.Was = nil, "", api.Ref{}, "", nil, nil
	})
	out, n := fit(limit, len(groups), func(i int) string { return changeGroup(groups[i]).markdown() })
	left := 0
	for _, g := range groups[n:] {
		left += len(g)
	}
	return out, left
}

func (g changeGroup) markdown() string {
	c := g[0]
	summary := text(printers.Cut(c.PolicyKind.Kind, nameLimit)) + " on " + code(printers.Cut(api.PathText(c.Path), nameLimit))
	summary += api.More(" and ", len(g)-1, "path")
	switch {
	case len(c.Lost) > 0:
		summary += ": <b>loses " + text(printers.Cut(strings.Join(c.Lost, ", "), nameLimit)) + "</b>"
	case len(c.Gained) > 0:
		summary += ": <b>new, gets " + text(printers.Cut(api.GainedText(c.Gained), nameLimit)) + "</b>"
	case c.New:
		summary += ": <b>new</b>"
	case c.Removed:
		summary += ": <b>removed</b>"
	}
	content := g.causes()
	if len(g) > 1 {
		content += g.listPaths() + "\n"
	} else if c.Was != nil {
		content += "Before the change these requests were served on " + code(printers.Cut(api.PathText(c.Was), nameLimit)) + ".\n\n"
	}
	var diff []string
	for _, r := range c.Rules {
		diff = append(append(diff, ruleLines("- ", r.Rule, r.Before)...), ruleLines("+ ", r.Rule, r.After)...)
	}
	return details(summary, content+fence("diff", strings.Join(diff, "\n")))
}

// causes names the objects that changed the paths, and where they are.
func (g changeGroup) causes() string {
	var causes []Object
	for _, c := range g {
		for _, o := range c.Causes {
			if !slices.Contains(causes, o) {
				causes = append(causes, o)
			}
		}
	}
	var parts []string
	for i, o := range causes {
		if i == listedCauses {
			parts = append(parts, api.Plural(len(causes)-i, "more object"))
			break
		}
		part := strings.TrimSpace(text(printers.Cut(o.Operation, nameLimit)) + " " + code(printers.Cut(o.Ref.String(), nameLimit)))
		if at := o.At.String(); at != "" {
			part += " (" + code(printers.Cut(at, nameLimit)) + ")"
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return ""
	}
	return "Changed by " + api.JoinNames(parts) + "\n\n"
}

// listPaths lists the paths, with those that served their requests before.
func (g changeGroup) listPaths() string {
	var out strings.Builder
	for i, c := range g {
		if i == listedPaths {
			fmt.Fprintf(&out, "- and %s\n", api.Plural(len(g)-i, "more path"))
			break
		}
		out.WriteString("- " + code(printers.Cut(api.PathText(c.Path), nameLimit)))
		if c.Was != nil {
			out.WriteString(", before the change on " + code(printers.Cut(api.PathText(c.Was), nameLimit)))
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// ruleLines returns the value of a rule before or after the change as lines of a diff.
func ruleLines(sign, rule string, v *api.RuleValue) []string {
	if v == nil {
		return nil
	}
	value := printers.Lines(v.Value, shortValue)
	if more := len(value) - valueLines; more > 0 {
		value = append(value[:valueLines:valueLines], "… "+api.Plural(more, "more line"))
	}
	for i, l := range value {
		value[i] = printers.Cut(printers.OneLine(l), valueLine)
	}
	out := printers.RuleLines(sign, printers.Cut(rule, nameLimit), v, value)
	for i, l := range out {
		out[i] = printers.Cut(printers.OneLine(l), messageLimit)
	}
	return out
}
