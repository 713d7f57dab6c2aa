package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
)

// violations are the current violations by key. The message is not part of the key.
type violations map[string]api.Violation

// byKey returns violations by key. Several of one constraint on one path are numbered
// in their order.
func byKey(all []api.Violation) violations {
	out := make(violations, len(all))
	for _, v := range all {
		var policy string
		if v.Policy != nil {
			policy = v.Policy.String()
		}
		key := strings.Join([]string{string(v.Code), v.PolicyKind.String(), v.Rule, policy, pathText(v.Path)}, "\x00")
		at := key
		for n := 2; ; n++ {
			if _, taken := out[at]; !taken {
				break
			}
			at = fmt.Sprintf("%s\x00%d", key, n)
		}
		out[at] = v
	}
	return out
}

// replace returns the violations after a run: those that it found, and earlier ones on
// paths that it did not cover. added and resolved are the differences, sorted.
func (vs violations) replace(found []api.Violation, covered func([]api.PathElement) bool) (next violations, added, resolved []api.Violation) {
	next = byKey(found)
	for at, v := range next {
		if _, known := vs[at]; !known {
			added = append(added, v)
		}
	}
	for at, v := range vs {
		if _, still := next[at]; still {
			continue
		}
		if covered(v.Path) {
			resolved = append(resolved, v)
		} else {
			next[at] = v
		}
	}
	slices.SortFunc(added, compare)
	slices.SortFunc(resolved, compare)
	return next, added, resolved
}

func compare(a, b api.Violation) int {
	return cmp.Or(
		api.ComparePolicyKinds(a.PolicyKind, b.PolicyKind),
		api.ComparePaths(a.Path, b.Path),
		strings.Compare(string(a.Code), string(b.Code)),
		strings.Compare(a.Rule, b.Rule),
		strings.Compare(a.Message, b.Message),
	)
}
