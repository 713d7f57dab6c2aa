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

// maxOrdered is the number of pairs of policies that are merged in both orders: two for each of
// very many on one target would take long.
const maxOrdered = 10_000

// warnOrderByName prints that policies of one target are ordered by name, since they have no
// creation time, where their order makes a difference, with the first two of them.
func (t *terminal) warnOrderByName(v *snapshot.View) {
	n, first, compared := 0, "", 0
	for _, k := range v.Kinds() {
		for p := range v.Policies(k.Ref()) {
			for _, t := range v.Targets(p) {
				for rival, on := range v.On(t.Ref) {
					if compared == maxOrdered || !byName(p, rival) || !meet(p, rival, t, on) {
						continue
					}
					if compared++; !orderDecides(p, rival) {
						continue
					}
					if n++; n == 1 {
						first = fmt.Sprintf("%s comes before %s on %s by name", p.Ref(), rival.Ref(), t)
					}
				}
			}
		}
	}
	bound := ""
	if compared == maxOrdered {
		bound = "at least "
	}
	switch {
	case n == 1:
		t.warnf("%s: neither has a creationTimestamp, and on a cluster the older one is first", first)
	case n > 1:
		t.warnf("%s, as in %s%d more pairs of policies: they have no creationTimestamp, and on a cluster the older one is first", first, bound, n-1)
	}
}

// byName reports whether a policy comes before another one of its kind by name alone.
func byName(p, rival *policykind.Policy) bool {
	return p.Kind == rival.Kind && p.Created == merge.Undated && rival.Created == merge.Undated && p.Invalid == nil && rival.Invalid == nil && p.Rank == rival.Rank &&
		merge.Compare(merge.Layer{Policy: &p.Policy}, merge.Layer{Policy: &rival.Policy}) < 0
}

// meet reports whether two policies meet on a target. Consumers of two namespaces do not.
func meet(p, rival *policykind.Policy, t, on policykind.Target) bool {
	return on.SamePlace(t) && on.Refused == "" && t.Refused == "" && (p.Namespace == rival.Namespace || !on.Consumer || !t.Consumer)
}

// orderDecides reports whether the effective policies of one target depend on the order of
// two policies.
func orderDecides(p, rival *policykind.Policy) bool {
	switch p.Kind.SameTarget {
	case api.None:
		return true
	case api.Collect:
		return !p.Empty() && !rival.Empty()
	case api.Alone:
		return false
	default:
		return !slices.EqualFunc(foldPair(p, rival), foldPair(rival, p), func(a, b merge.Effective) bool { return a.Rule == b.Rule })
	}
}

// foldPair returns the rules that two policies of one target have in common, by themselves.
func foldPair(older, newer *policykind.Policy) []merge.Effective {
	same := older.Kind.MergeSameTarget()
	layers := []merge.Layer{{Policy: &older.Policy, SameTarget: same}, {Policy: &newer.Policy, SameTarget: same, Place: 1}}
	if same == merge.SameTargetOldestWins {
		layers[1].As = older.Above(nil)
	} else {
		layers[0].As = newer.Above(nil)
	}
	r, _ := merge.Fold(layers, nil) // only a meter has errors
	return r.Rules
}
