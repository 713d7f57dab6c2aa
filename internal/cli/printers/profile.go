package printers

import (
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
)

func writeProfiles(w *textWriter, l *api.ProfileList) {
	if w.tree {
		w.nodes(profileNodes(l))
		return
	}
	var rows [][]cell
	for _, p := range l.Items {
		rows = append(rows, []cell{
			plainCell(p.PolicyKind.String()), plainCell(string(p.Spec.Class)), {source(p), sourceStyle(p)}, plainCell(yesNo(p.Installed)),
			plainCell(endsAt(p.Spec)), plainCell(strategies(p.Spec)), plainCell(string(p.Spec.SameTarget)), {profileNote(p), dim},
		})
	}
	w.table([]string{"POLICY KIND", "CLASS", "SOURCE", "INSTALLED", "ENDS AT", "STRATEGY", "SAME TARGET", "NOTE"}, rows)
}

func profileNodes(l *api.ProfileList) *node {
	root := &node{}
	for _, p := range l.Items {
		top := root.add(paint(bold, p.PolicyKind.String()))
		for _, part := range profileParts(p) {
			top.add(paint(dim, part.name+": ") + paint(plain, strings.Join(part.values, ", ")))
		}
		for _, r := range p.Refused {
			top.add(paint(red, fmt.Sprintf("PolicyProfile %s is %s", r.Name, r.Reason)) + paint(plain, ": "+r.Message))
		}
	}
	return root
}

func profileParts(p api.ProfileInForce) []namedList {
	levels := Texts(p.Spec.Levels, func(l api.LevelName) string { return string(l) })
	targets := Texts(p.Spec.Targets.Kinds, func(k api.TargetKind) string { return api.PolicyKind{Group: k.Group, Kind: k.Kind}.String() })
	fields := Texts(p.Spec.Fields, func(f api.RouteField) string { return f.Route + " by " + f.Rule })
	var attachment []string
	var through string
	if t := p.Spec.Attachment.Through; t != nil {
		through = t.Field + " of " + t.Kind
	}
	for _, by := range []struct {
		name string
		set  bool
	}{{"ExtensionRef", p.Spec.Attachment.ExtensionRef}, {"parametersRef", p.Spec.Attachment.ParametersRef}, {p.Spec.Attachment.Annotation, p.Spec.Attachment.Annotation != ""}, {through, through != ""}} {
		if by.set {
			attachment = append(attachment, by.name)
		}
	}
	return withoutEmpty([]namedList{
		{"source", []string{source(p)}}, {"installed", []string{yesNo(p.Installed)}}, {"class", []string{string(p.Spec.Class)}},
		{"levels", levels}, {"targets", targets}, {"attached by", attachment}, {"strategy", []string{strategies(p.Spec)}},
		{"same target", []string{string(p.Spec.SameTarget)}}, {"fields of routes", fields},
	})
}

func source(p api.ProfileInForce) string {
	if p.Profile != "" {
		return p.Source + " (" + p.Profile + ")"
	}
	return p.Source
}

func sourceStyle(p api.ProfileInForce) style {
	if p.Source == "label" {
		return yellow
	}
	return plain
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// endsAt returns the levels at which the paths of a kind end, on gateways and in
// a mesh.
func endsAt(p api.PolicyProfileSpec) string {
	if len(p.Levels) == 0 {
		return ""
	}
	last := p.Levels[len(p.Levels)-1]
	if slices.Contains(p.Levels, api.LevelBackend) {
		last = api.LevelBackend
	}
	if last != api.LevelService && last != api.LevelServiceNamespace {
		return string(last)
	}
	for _, l := range slices.Backward(p.Levels) {
		if slices.Contains([]api.LevelName{api.LevelGatewayClass, api.LevelGatewayNamespace, api.LevelGateway, api.LevelListenerSet, api.LevelListener}, l) {
			return string(l) + ", " + string(last)
		}
	}
	return string(last)
}

// strategies returns the strategies that the kind allows, the default first.
func strategies(p api.PolicyProfileSpec) string {
	if len(p.Strategy.Allowed) == 0 {
		return "atomic"
	}
	return strings.Join(Texts(p.Strategy.Allowed, func(s api.StrategyName) string { return string(s) }), ", ")
}

func profileNote(p api.ProfileInForce) string {
	var notes []string
	if p.Source == "label" {
		notes = append(notes, "derived from the label of its definition")
	}
	for _, r := range p.Refused {
		notes = append(notes, fmt.Sprintf("PolicyProfile %s is %s: %s", r.Name, r.Reason, r.Message))
	}
	return strings.Join(notes, "; ")
}
