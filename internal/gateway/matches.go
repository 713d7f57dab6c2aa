package gateway

import (
	"bytes"
	"encoding/json"
	"hash/fnv"
	"slices"

	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"overrule.dev/overrule/internal/decode"
)

// MatchRules pairs the rules of a route before and after an edit: by name,
// then by their matches in order, then, for what is left without a name, by
// position. It returns for each rule after its position before, or -1.
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
	pair(func(b, a int) bool {
		return before.Rules[b].Name != "" && before.Rules[b].Name == after.Rules[a].Name
	})
	was, is := before.fingerprints(), after.fingerprints()
	pair(func(b, a int) bool { return was[b] == is[a] })
	pair(func(b, a int) bool {
		return a == b && before.Rules[b].Name == "" && after.Rules[a].Name == ""
	})
	return out
}

// TakesFrom reports whether the i-th rule of a route takes requests that were
// those of the k-th before an edit, and not its own: it has a match which that
// one had, and which it had not itself.
func TakesFrom(before *Route, k int, after *Route, i int) bool {
	theirs, own := before.matchesOf(k), []uint64(nil)
	if was := MatchRules(before, after)[i]; was >= 0 && was != k {
		own = before.matchesOf(was)
	}
	return slices.ContainsFunc(after.matchesOf(i), func(m uint64) bool {
		return slices.Contains(theirs, m) && !slices.Contains(own, m)
	})
}

// GivesMatches reports whether the i-th rule of a route lacks a match that the
// k-th had before an edit.
func GivesMatches(before *Route, k int, after *Route, i int) bool {
	kept := after.matchesOf(i)
	return slices.ContainsFunc(before.matchesOf(k), func(m uint64) bool { return !slices.Contains(kept, m) })
}

// TakesOver reports whether a backend of the i-th rule of a route gets the
// requests that the k-th rule sent to another one before an edit, if the i-th
// takes them. That backend goes on getting them itself where the rule names it;
// else those that the k-th rule had not before get them, or all if there is none.
func TakesOver(before *Route, k int, left Backend, after *Route, i int, b Backend) bool {
	was, is := &before.Rules[k], &after.Rules[i]
	isNew := func(b Backend) bool { return is.Serves(b) && !was.Serves(b) }
	switch {
	case !was.Serves(left) || !is.Serves(b):
		return false
	case is.Serves(left):
		return b == left
	default:
		return isNew(b) || !slices.ContainsFunc(is.Backends, isNew)
	}
}

// sameRules reports whether the rules have the same names and matches, letter
// by letter: the ordinary edit of a route leaves them.
func sameRules(before, after *Route) bool {
	if len(before.Rules) != len(after.Rules) {
		return false
	}
	for i := range before.Rules {
		if before.Rules[i].Name != after.Rules[i].Name || !bytes.Equal(before.Rules[i].matches, after.Rules[i].matches) {
			return false
		}
	}
	return true
}

// fingerprints tell rules without a name apart, before and after an edit.
func (r *Route) fingerprints() []uint64 {
	out := make([]uint64, len(r.Rules))
	for i := range r.Rules {
		out[i] = fingerprint(r.Kind, r.Rules[i].matches)
	}
	return out
}

// fingerprint hashes the matches of a rule, defaulted as the API server would;
// those that cannot be read, as they stand.
func fingerprint(kind string, matches json.RawMessage) uint64 {
	return hashOf(canonicalMatches(kind, matches))
}

// matchesOf hashes the matches of a rule one by one.
func (r *Route) matchesOf(rule int) []uint64 {
	var out []uint64
	switch all := canonicalMatches(r.Kind, r.Rules[rule].matches).(type) {
	case []gatewayv1.HTTPRouteMatch:
		for i := range all {
			out = append(out, hashOf(all[i]))
		}
	case []gatewayv1.GRPCRouteMatch:
		for i := range all {
			out = append(out, hashOf(all[i]))
		}
		if len(all) == 0 { // every request
			out = append(out, hashOf(gatewayv1.GRPCRouteMatch{}))
		}
	default:
		out = append(out, hashOf(all))
	}
	return out
}

// HTTPMatches returns the matches of the i-th rule of an HTTPRoute as the API
// server stores them, at least one; none for other routes, and where they cannot
// be read.
func (r *Route) HTTPMatches(i int) []gatewayv1.HTTPRouteMatch {
	all, _ := canonicalMatches(r.Kind, r.Rules[i].matches).([]gatewayv1.HTTPRouteMatch)
	return all
}

// GRPCMatches is HTTPMatches for a GRPCRoute; a rule without matches, which is for
// every request, has none.
func (r *Route) GRPCMatches(i int) []gatewayv1.GRPCRouteMatch {
	all, _ := canonicalMatches(r.Kind, r.Rules[i].matches).([]gatewayv1.GRPCRouteMatch)
	return all
}

// canonical returns the matches of a rule as the API server stores them.
func canonicalMatches(kind string, matches json.RawMessage) any {
	switch kind {
	case KindHTTPRoute:
		if m, err := readMatches[gatewayv1.HTTPRouteMatch](matches); err == nil {
			return httpMatches(m)
		}
	case KindGRPCRoute:
		if m, err := readMatches[gatewayv1.GRPCRouteMatch](matches); err == nil {
			return grpcMatches(m)
		}
	}
	return matches
}

// readMatches reads the matches of a rule, which may be left out.
func readMatches[T any](data json.RawMessage) ([]T, error) {
	if len(data) == 0 {
		return nil, nil
	}
	m, err := decode.As[[]T](data)
	return *m, err
}

func hashOf(plain any) uint64 {
	h := fnv.New64a()
	_ = json.NewEncoder(h).Encode(plain) // a hash takes every write, and matches are plain data
	return h.Sum64()
}
