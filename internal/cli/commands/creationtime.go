package commands

import (
	"fmt"
	"slices"
	"time"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
)

// timeOfWrite returns the creation time of what a change creates: after that of all
// manifests, dated or not, since what exists is older than what a write creates; on a
// cluster that of the request, in seconds since 1970.
func (s *source) timeOfWrite(now time.Time) int64 {
	if s.set != nil {
		return merge.Newest
	}
	return policykind.InFlight(now)
}

// warnOrderByName prints that policies of one target are ordered by name, since they have no
// creation time, where their order makes a difference, with the first two of them.
func (a *app) warnOrderByName(v *snapshot.View) {
	n, first := 0, ""
	for _, k := range v.Kinds() {
		for p := range v.Policies(k.Ref()) {
			for _, t := range v.Targets(p) {
				for rival, on := range v.On(t.Ref) {
					if !sameTarget(t, on) || api.CompareRefs(p.Ref(), rival.Ref()) >= 0 || !orderDecides(p, rival) {
						continue
					}
					if n++; n == 1 {
						first = fmt.Sprintf("%s comes before %s on %s by name", p.Ref(), rival.Ref(), t)
					}
				}
			}
		}
	}
	switch {
	case n == 1:
		a.warnf("%s: neither has a creationTimestamp, and on a cluster the older one is first", first)
	case n > 1:
		a.warnf("%s, as in %d more pairs of policies: they have no creationTimestamp, and on a cluster the older one is first", first, n-1)
	}
}

// sameTarget reports whether two policies meet on a target. Consumer policies apply to the
// clients of one namespace, and are left out.
func sameTarget(t, on policykind.Target) bool {
	return on.SamePlace(t) && on.Refused == "" && t.Refused == "" && !on.Consumer && !t.Consumer
}

// orderDecides reports whether the effective policies of one target depend on the order of
// two policies without a creation time.
func orderDecides(p, rival *policykind.Policy) bool {
	if p.Kind != rival.Kind || p.Created != merge.Undated || rival.Created != merge.Undated || p.Invalid != nil || rival.Invalid != nil || p.Rank != rival.Rank {
		return false
	}
	switch p.Kind.SameTarget {
	case api.None:
		return true
	case api.Collect, api.Alone:
		return false
	default:
		return slices.ContainsFunc(p.Blocks, func(b merge.Rules) bool {
			return slices.ContainsFunc(rival.Blocks, func(r merge.Rules) bool { return blocksCompete(b, r) })
		})
	}
}

// blocksCompete reports whether two blocks of one order have a rule in common, or one of
// them takes effect as a whole.
func blocksCompete(b, r merge.Rules) bool {
	if (b.Block == merge.Overrides) != (r.Block == merge.Overrides) || len(b.Rules)*len(r.Rules) == 0 {
		return false
	}
	return b.Strategy == merge.Atomic || r.Strategy == merge.Atomic ||
		slices.ContainsFunc(b.Rules, func(rule merge.Rule) bool { return r.At(rule.Key) != nil })
}
