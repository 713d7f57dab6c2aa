package commands

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/report"
	"overrule.dev/overrule/internal/guard"
)

// netImpact is what a step, as the last one, changes in the end in the effective policies
// of one kind.
type netImpact struct {
	paths      []*netChange
	namespaces map[string]bool
	lost       map[string]int
}

// warnOfNetImpact replaces the warnings of how far single steps of a change reach by those
// of what changes in the end, at the last step that changes it: a rule that one step takes
// away, and a later one adds again, is no loss.
func warnOfNetImpact(steps []evaluatedStep) {
	at := make(map[*guard.Decision]int) // where the warnings were
	for _, e := range steps {
		if i := slices.IndexFunc(e.decision.Warnings, exceedsBlastRadius); i >= 0 {
			at[e.decision] = i
			e.decision.Warnings = slices.DeleteFunc(e.decision.Warnings, exceedsBlastRadius)
		}
	}
	impacts := make(map[*guard.Decision]map[api.PolicyKind]*netImpact)
	for _, c := range newNetChanges(steps).changed() {
		kind := c.Effective().Kind
		for _, e := range slices.Backward(c.causes) {
			if _, warned := at[e.decision]; !warned || kind.Action(api.ReasonBlastRadius, api.Warn) != api.Warn {
				continue
			}
			if impacts[e.decision] == nil {
				impacts[e.decision] = make(map[api.PolicyKind]*netImpact)
			}
			n := impacts[e.decision][kind.Ref()]
			if n == nil {
				n = &netImpact{namespaces: make(map[string]bool), lost: make(map[string]int)}
				impacts[e.decision][kind.Ref()] = n
			}
			n.add(c)
			break
		}
	}
	for d, kinds := range impacts {
		var warnings []guard.Finding
		for _, kind := range slices.SortedFunc(maps.Keys(kinds), api.ComparePolicyKinds) {
			warnings = append(warnings, guard.Finding{Code: api.ReasonBlastRadius, Action: api.Warn, What: kinds[kind].text(kind)})
		}
		d.Warnings = slices.Insert(d.Warnings, at[d], warnings...)
	}
}

func (n *netImpact) add(c *netChange) {
	n.paths = append(n.paths, c)
	n.namespaces[c.Effective().Path.Namespace()] = true
	for _, group := range guard.LostGroups(c.Pair) {
		n.lost[group]++
	}
}

// text names the path if there is one, and counts several.
func (n *netImpact) text(kind api.PolicyKind) string {
	if len(n.paths) == 1 {
		text := fmt.Sprintf("effective policy of %s changes on %s", kind.Kind, report.PathName(n.paths[0].Effective().Path.Elements()))
		if len(n.lost) > 0 {
			text += ", which loses " + strings.Join(slices.Sorted(maps.Keys(n.lost)), ", ")
		}
		return text
	}
	namespaces := "1 namespace"
	if len(n.namespaces) > 1 {
		namespaces = fmt.Sprintf("%d namespaces", len(n.namespaces))
	}
	return fmt.Sprintf("effective policy of %s changes on %d paths in %s%s", kind.Kind, len(n.paths), namespaces, guard.LostText(n.lost))
}
