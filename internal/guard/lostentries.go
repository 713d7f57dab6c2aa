package guard

import (
	"fmt"
	"maps"
	"slices"

	"overrule.dev/overrule/merge"
)

// entriesText says how many entries of a list are in force in the place of those that are
// replaced: ": 2 entries instead of 3". It returns "" where no single rule is replaced, and
// where the reader may not read both policies: a count is a value, too.
func (ev *evaluation) entriesText(l *ruleLoss) string {
	if len(l.rules) != 1 || ev.guard.OmitCounts || !ev.reads(l.from.Namespace) || !ev.reads(l.holder().Namespace) {
		return ""
	}
	key := l.rules[0].key
	was, _ := find(l.on.Before.Rules, key)
	is, found := find(l.on.After.Rules, key)
	if !found {
		return ""
	}
	field, before, after := listEntries(merge.Plain(l.on.Before.Rules[was].Value), merge.Plain(l.on.After.Rules[is].Value))
	if before == after {
		return ""
	}
	if l.rules[0].name != key.String() {
		field = "." + key.String() + field
	}
	if field != "" {
		field = ": " + field[1:]
	}
	noun := "entries"
	if after == 1 {
		noun = "entry"
	}
	return fmt.Sprintf("%s: %d %s instead of %d", field, after, noun, before)
}

// listEntries returns the numbers of entries of two lists, or in two maps those of the first
// list that gets shorter, and the field that has it.
func listEntries(before, after any) (field string, was, is int) {
	switch before := before.(type) {
	case []any:
		if after, ok := after.([]any); ok {
			return "", len(before), len(after)
		}
	case map[string]any:
		after, _ := after.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(before)) {
			if below, was, is := listEntries(before[name], after[name]); was > is {
				return "." + name + below, was, is
			}
		}
	}
	return "", 0, 0
}
