package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
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
type changeGroup struct {
	Change // that of the first path; the causes are those of all paths
	paths  []changedPath
}

// changedPath is a path after the change and before it.
type changedPath struct{ now, was []api.PathElement }

// changes returns the changed paths, in at most limit bytes, and the number of those that
// do not fit. Paths with equal changes are shown together.
func (r *Report) changes(limit int) (string, int) {
	var out strings.Builder
	left := 0
	for _, g := range r.changeGroups() {
		if left == 0 {
			if block := g.markdown(); out.Len()+len(block) <= limit {
				out.WriteString(block)
				continue
			}
		}
		left += len(g.paths)
	}
	return out.String(), left
}

func (r *Report) changeGroups() []changeGroup {
	at := make(map[string]int)
	var out []changeGroup
	for _, c := range r.Changes {
		equal := Change{Change: c.Change, New: c.New, Removed: c.Removed}
		equal.Path, equal.Object, equal.Operation = nil, api.Ref{}, ""
		key := compact(equal)
		i, ok := at[key]
		if !ok {
			i = len(out)
			at[key] = i
			out = append(out, changeGroup{Change: c})
		}
		g := &out[i]
		g.paths = append(g.paths, changedPath{c.Path, c.Was})
		for _, o := range c.Causes {
			if ok && !slices.Contains(g.Causes, o) {
				g.Causes = append(slices.Clip(g.Causes), o)
			}
		}
	}
	return out
}

func (g changeGroup) markdown() string {
	summary := text(cut(g.PolicyKind.Kind, nameLimit)) + " on " + code(cut(api.PathText(g.Path), nameLimit))
	if n := len(g.paths) - 1; n > 0 {
		summary += " and " + api.Plural(n, "more path")
	}
	switch {
	case len(g.Lost) > 0:
		summary += ": <b>loses " + text(cut(strings.Join(g.Lost, ", "), nameLimit)) + "</b>"
	case len(g.Gained) > 0:
		summary += ": <b>new, gets " + text(cut(api.GainedText(g.Gained), nameLimit)) + "</b>"
	case g.New:
		summary += ": <b>new</b>"
	case g.Removed:
		summary += ": <b>removed</b>"
	}
	var content strings.Builder
	content.WriteString(g.causes())
	if p := g.paths[0]; len(g.paths) == 1 && p.was != nil {
		content.WriteString("Before the change these requests were served on " + code(cut(api.PathText(p.was), nameLimit)) + ".\n\n")
	}
	if len(g.paths) > 1 {
		content.WriteString(g.listPaths() + "\n")
	}
	content.WriteString(fence("diff", strings.Join(g.diff(), "\n")))
	return details(summary, content.String())
}

// causes names the objects that changed the paths, and where they are.
func (g changeGroup) causes() string {
	var parts []string
	for i, o := range g.Causes {
		if i == listedCauses {
			parts = append(parts, api.Plural(len(g.Causes)-i, "more object"))
			break
		}
		part := strings.TrimSpace(text(cut(o.Operation, nameLimit)) + " " + code(cut(o.Ref.String(), nameLimit)))
		if at := o.At.String(); at != "" {
			part += " (" + code(cut(at, nameLimit)) + ")"
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return ""
	}
	return "Changed by " + joinAnd(parts) + "\n\n"
}

// listPaths lists the paths, with those that served their requests before.
func (g changeGroup) listPaths() string {
	var out strings.Builder
	for i, p := range g.paths {
		if i == listedPaths {
			fmt.Fprintf(&out, "- and %s\n", api.Plural(len(g.paths)-i, "more path"))
			break
		}
		out.WriteString("- " + code(cut(api.PathText(p.now), nameLimit)))
		if p.was != nil {
			out.WriteString(", before the change on " + code(cut(api.PathText(p.was), nameLimit)))
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// diff returns the rules before and after, as lines of a diff.
func (g changeGroup) diff() []string {
	var out []string
	for _, r := range g.Rules {
		out = append(out, ruleLines("- ", r.Rule, r.Before)...)
		out = append(out, ruleLines("+ ", r.Rule, r.After)...)
	}
	return out
}

func ruleLines(sign, rule string, v *api.RuleValue) []string {
	if v == nil {
		return nil
	}
	from := "  from " + v.From.String()
	if v.Block != "" && v.Block != "bare" {
		from += " (" + v.Block + ")"
	}
	from = oneLine(cut(from, nameLimit))
	name := sign + oneLine(cut(rule, nameLimit))
	value := []string{redacted}
	if !v.Redacted {
		value = lines(v.Value)
	}
	if len(value) == 1 {
		return []string{name + " = " + value[0] + from}
	}
	out := []string{name + " =" + from}
	for _, l := range value {
		out = append(out, sign+"  "+l)
	}
	return out
}

// redacted stands for a value that is omitted.
const redacted = "(redacted)"

// lines returns a value on one line if it is short, and as YAML otherwise.
func lines(v any) []string {
	short := oneLine(compact(v))
	if len([]rune(short)) <= shortValue {
		return []string{short}
	}
	data, err := yaml.Marshal(v)
	if err != nil {
		return []string{cut(short, valueLine)}
	}
	all := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	var out []string
	for i, l := range all {
		if i == valueLines {
			return append(out, fmt.Sprintf("… %s", api.Plural(len(all)-i, "more line")))
		}
		out = append(out, cut(oneLine(l), valueLine))
	}
	return out
}

func compact(v any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "?"
	}
	return strings.TrimSuffix(b.String(), "\n")
}
