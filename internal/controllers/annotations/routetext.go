package annotations

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/explain"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/merge"
)

// routeAnnotation is the annotation of a route.
type routeAnnotation struct {
	// Hash of the paths and the origins of their rules. It does not include values:
	// readers of the route could guess short ones.
	Hash string `json:"hash"`
	// Policies by policy kind. Paths with the same winners share an entry.
	Policies map[string][]winners `json:"policies,omitempty"`
	// Counts by policy kind, if Policies would be too large.
	Counts map[string]counts `json:"counts,omitempty"`
}

type winners struct {
	Paths []string          `json:"paths"`
	Rules map[string]string `json:"rules"`
}

type counts struct {
	Paths int `json:"paths"`
	Rules int `json:"rules"`
}

func routeText(through walk, self api.Ref) (string, error) {
	var items []*item
	known := make(map[*merge.Result]*item)
	err := through(func(e *effective.Effective) error {
		it := itemOf(e, known[e.Result])
		items, known[e.Result] = append(items, it), it
		return nil
	})
	if err != nil || len(items) == 0 {
		return "", err
	}
	slices.SortFunc(items, func(a, b *item) int {
		return explain.CompareItems(a.EffectivePolicy, b.EffectivePolicy)
	})
	annotation := routeAnnotation{Hash: originHash(items, self), Policies: make(map[string][]winners)}
	for _, it := range items {
		annotation.add(it)
	}
	return marshalLimited(annotation, func(string) any { return annotation.withCounts(items) })
}

// item is an effective policy on a path of the route.
type item struct {
	api.EffectivePolicy

	won map[string]string // the winner of each rule
}

// itemOf returns an item. It copies one with the same result if there is one: most
// rules of a route differ only in their path, and computing the rest is expensive.
func itemOf(e *effective.Effective, same *item) *item {
	if same != nil && same.Route == nil {
		it := *same
		it.Path = e.Path.Elements()
		return &it
	}
	it := &item{EffectivePolicy: withoutRouteName(explain.Item(e)), won: make(map[string]string, len(e.Rules))}
	for _, r := range it.Rules {
		it.won[r.Rule] = r.From.Key()
		if r.Block == merge.Object.String() {
			it.won[r.Rule] = itself
		}
	}
	return it
}

func (n *routeAnnotation) add(it *item) {
	kind := it.PolicyKind.String()
	at := pathText(it.Path)
	for i, w := range n.Policies[kind] {
		if maps.Equal(w.Rules, it.won) {
			n.Policies[kind][i].Paths = append(w.Paths, at)
			return
		}
	}
	n.Policies[kind] = append(n.Policies[kind], winners{Paths: []string{at}, Rules: it.won})
}

// withoutRouteName removes the name of the route from rules that its own fields set:
// the name may still have to be generated.
func withoutRouteName(p api.EffectivePolicy) api.EffectivePolicy {
	for i := range p.Rules {
		if p.Rules[i].Block == merge.Object.String() {
			p.Rules[i].From.Name = ""
		}
	}
	return p
}

// pathText returns the name of a path of the route: gateway#listener or the parent
// service, and the elements below the route.
func pathText(path []api.PathElement) string {
	var above api.PathElement
	var below []string
	for _, e := range path {
		switch {
		case e.Index != nil:
			below = append(below, e.Section)
			if e.Member != "" {
				below = append(below, e.Member)
			}
		case len(below) > 0: // a backend
			below = append(below, e.String())
		case e.Kind == gateway.KindListener || e.Kind == gateway.KindService:
			above = e
		}
	}
	text := strings.TrimPrefix(above.String(), gateway.KindListener+" ")
	return strings.TrimSpace(text + " " + strings.Join(below, " "))
}

func (n *routeAnnotation) withCounts(items []*item) routeAnnotation {
	out := routeAnnotation{Hash: n.Hash, Counts: make(map[string]counts)}
	for _, it := range items {
		c := out.Counts[it.PolicyKind.String()]
		c.Paths++
		c.Rules += len(it.Rules)
		out.Counts[it.PolicyKind.String()] = c
	}
	return out
}

// originHash returns a short hash of the origins of rules by path. It does not include
// the name of the route, which may still have to be generated.
func originHash(items []*item, self api.Ref) string {
	h := sha256.New()
	enc := json.NewEncoder(h)
	for _, one := range items {
		it := one.EffectivePolicy
		it.Spec, it.Policies, it.Route = nil, nil, nil
		it.Path = slices.Clone(it.Path)
		for i, e := range it.Path {
			if e.Namespace == self.Namespace && e.Name == self.Name && strings.HasPrefix(e.Kind, self.Kind) {
				it.Path[i].Name = ""
			}
		}
		_ = enc.Encode(it) // writing to a hash and encoding decoded JSON cannot fail
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
