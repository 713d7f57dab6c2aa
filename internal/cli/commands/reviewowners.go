package commands

import (
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
)

// noteOwners prints whom to ask about what holds: the policies of other namespaces whose
// rules are in effect, or that took rules.
func (r *reviewed) noteOwners(status *api.ReviewStatus) {
	var others []api.Ref
	add := func(ref api.Ref) {
		if ref.Namespace != r.namespace && ref.Name != "" && !slices.Contains(others, ref) {
			others = append(others, ref)
		}
	}
	for _, item := range status.Items {
		for _, rule := range item.Rules {
			add(rule.From)
		}
	}
	for _, o := range status.Outcomes {
		for _, lost := range o.Lost {
			add(lost.To)
		}
	}
	for _, x := range status.Explanations {
		for _, p := range x.Policies {
			if len(p.Contributed) > 0 {
				add(p.Policy)
			}
			for _, lost := range p.Lost {
				add(lost.To)
			}
		}
	}
	if len(others) == 0 {
		return
	}
	slices.SortFunc(others, api.CompareRefs)
	names := make([]string, len(others))
	for i, ref := range others {
		names[i] = ref.String()
	}
	r.app.infof("note: to change what policies of other namespaces set here, ask their owners: %s", strings.Join(names, ", "))
}
