package printers

import (
	"fmt"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
)

// fieldRows are the fields of routes that policies control, with their values.
func fieldRows(items []api.EffectivePolicy) [][]cell {
	var rows [][]cell
	for _, item := range items {
		if item.Route == nil {
			continue
		}
		for _, f := range item.Route.Fields {
			row := []cell{
				text(item.PolicyKind.Kind), text(pathName(item.Path)), {f.Field, cyan},
				text(""), text(""), {"not set", dim}, {contested(f), red},
			}
			if f.From != nil {
				row[3], row[4], row[5] = text(f.From.Key()), text(f.Block), cell{short(f.Value, shortValue), dim}
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// fieldNodes adds what the route comes to.
func (w *page) fieldNodes(at *node, item api.EffectivePolicy) {
	if item.Route == nil {
		return
	}
	for _, f := range item.Route.Fields {
		label := w.paint(cyan, f.Field)
		if f.From == nil {
			label += w.paint(dim, " is not set")
		} else {
			label += " = " + w.paint(plain, short(f.Value, shortValue)) + "  " + w.paint(dim, "from "+by(*f.From, f.Block))
		}
		if note := contested(f); note != "" {
			label += "  " + w.paint(red, note)
		}
		at.add(label)
	}
}

// contested names the kinds that want another value.
func contested(f api.EffectiveField) string {
	if len(f.ConflictsWith) == 0 {
		return ""
	}
	kinds := make([]string, len(f.ConflictsWith))
	for i, k := range f.ConflictsWith {
		kinds[i] = k.String()
	}
	return fmt.Sprintf("contested by %s", strings.Join(kinds, ", "))
}
