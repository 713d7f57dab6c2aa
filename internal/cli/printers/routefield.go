package printers

import (
	"fmt"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
)

// fieldRows returns the fields of routes that policies control, with their values.
func fieldRows(items []api.EffectivePolicy) [][]cell {
	var rows [][]cell
	for _, item := range items {
		if item.Route == nil {
			continue
		}
		for _, f := range item.Route.Fields {
			row := []cell{
				plainCell(item.PolicyKind.Kind), plainCell(api.PathText(item.Path)), {f.Field, cyan},
				plainCell(""), plainCell(""), {"not set", dim}, {conflictNote(f), red},
			}
			if f.From != nil {
				row[3], row[4], row[5] = plainCell(f.From.Key()), plainCell(f.Block), cell{shown(f.Value, f.Redacted, shortValue), dim}
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// fieldNodes adds the fields of the route that policies control.
func fieldNodes(at *node, item api.EffectivePolicy) {
	if item.Route == nil {
		return
	}
	for _, f := range item.Route.Fields {
		label := paint(cyan, f.Field)
		if f.From == nil {
			label += paint(dim, " is not set")
		} else {
			label += " = " + paint(plain, shown(f.Value, f.Redacted, shortValue)) + "  " + paint(dim, "from "+policyName(*f.From, f.Block))
		}
		if note := conflictNote(f); note != "" {
			label += "  " + paint(red, note)
		}
		at.add(label)
	}
}

// conflictNote returns the kinds that set the field to another value.
func conflictNote(f api.EffectiveField) string {
	if len(f.ConflictsWith) == 0 {
		return ""
	}
	return fmt.Sprintf("conflicts with %s", strings.Join(Texts(f.ConflictsWith, api.PolicyKind.String), ", "))
}
