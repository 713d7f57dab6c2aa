package gateway

import (
	"hash/maphash"
	"slices"
)

// MatchRules pairs the rules of a route before and after an update by the requests that
// they select: by their matches, of which neither the order nor the spelling counts, with
// the name deciding between rules with the same ones; then by name, then, for the
// remaining ones without a name, by position. It returns for each rule after the update
// its position before, or -1.
func MatchRules(before, after *Route) []int {
	out := make([]int, len(after.Rules))
	if sameRules(before, after) {
		for i := range out {
			out[i] = i
		}
		return out
	}
	taken := make([]bool, len(before.Rules))
	for i := range out {
		out[i] = -1
	}
	pair := func(same func(b, a int) bool) {
		for a := range after.Rules {
			for b := range before.Rules {
				if out[a] < 0 && !taken[b] && same(b, a) {
					out[a], taken[b] = b, true
				}
			}
		}
	}
	hashesBefore, hashesAfter := fingerprints(before), fingerprints(after)
	pair(func(b, a int) bool {
		return hashesBefore[b] == hashesAfter[a] && before.Rules[b].Name == after.Rules[a].Name
	})
	pair(func(b, a int) bool { return hashesBefore[b] == hashesAfter[a] })
	pair(func(b, a int) bool {
		return before.Rules[b].Name != "" && before.Rules[b].Name == after.Rules[a].Name
	})
	pair(func(b, a int) bool {
		return a == b && before.Rules[b].Name == "" && after.Rules[a].Name == ""
	})
	return out
}

// TakesFrom reports whether the i-th rule of a route after an update receives requests
// that the k-th received before: it has a match that the k-th had, and that it did not
// have itself.
func TakesFrom(before *Route, k int, after *Route, i int) bool {
	theirs, own := matchesOf(before, k), []uint64(nil)
	if old := MatchRules(before, after)[i]; old >= 0 && old != k {
		own = matchesOf(before, old)
	}
	return slices.ContainsFunc(matchesOf(after, i), func(m uint64) bool {
		return slices.Contains(theirs, m) && !slices.Contains(own, m)
	})
}

// fingerprints identify the rules by the matches that they have, in any order.
func fingerprints(r *Route) []uint64 {
	out := make([]uint64, len(r.Rules))
	for i := range r.Rules {
		matches := matchesOf(r, i)
		slices.Sort(matches)
		var h maphash.Hash
		h.SetSeed(textSeed)
		for _, m := range slices.Compact(matches) {
			maphash.WriteComparable(&h, m)
		}
		out[i] = h.Sum64()
	}
	return out
}

// matchesOf returns the hashes of the matches of a rule. The rules of other kinds than HTTPRoutes and
// GRPCRoutes have none.
func matchesOf(r *Route, rule int) []uint64 {
	var out []uint64
	matches := r.routeMatches()
	for i, h := range r.matchHashes() {
		if matches[i].rule == rule {
			out = append(out, h)
		}
	}
	return out
}
