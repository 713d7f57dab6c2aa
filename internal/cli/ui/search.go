package ui

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	api "overrule.dev/overrule/api/v1alpha1"
)

// indexed is a state with an index of its objects.
type indexed struct {
	State
	index func() []entry
}

// entry is an object with the text that is searched, in lower case.
type entry struct {
	*Object
	name, key, kind, text string
}

func newIndexed(s State) *indexed {
	return &indexed{State: s, index: sync.OnceValue(func() []entry {
		objects := s.Objects()
		out := make([]entry, len(objects))
		for i := range objects {
			out[i] = newEntry(&objects[i])
		}
		return out
	})}
}

func newEntry(o *Object) entry {
	words := slices.Concat([]string{o.Ref.PolicyKind().String(), o.Ref.Key()}, o.Hostnames, o.Rules)
	return entry{
		Object: o, name: strings.ToLower(o.Ref.Name), key: strings.ToLower(o.Ref.Key()), kind: strings.ToLower(o.Ref.Kind),
		text: strings.ToLower(strings.Join(words, "\n")),
	}
}

// SearchResult is an object that was found.
type SearchResult struct {
	Object
	// Match is the hostname or the rule that was searched for; empty if it was the
	// kind or the name.
	Match string `json:"match,omitempty"`
}

// SearchAnswer has the first objects that were found, best first.
type SearchAnswer struct {
	Total int            `json:"total"`
	Items []SearchResult `json:"items"`
}

// search returns the objects that contain all words of a query, of the kinds that end
// with a suffix, such as Route.
func (s *indexed) search(query, kindSuffix string, limit int) SearchAnswer {
	words := strings.Fields(strings.ToLower(query))
	type hit struct {
		*entry
		rank int
	}
	var hits []hit
	all := s.index()
	for i := range all {
		if !strings.HasSuffix(all[i].Ref.Kind, kindSuffix) {
			continue
		}
		if rank, ok := all[i].rank(words); ok {
			hits = append(hits, hit{&all[i], rank})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.order(), b.order())) })
	out := SearchAnswer{Total: len(hits), Items: []SearchResult{}}
	for _, h := range hits[:min(limit, len(hits))] {
		out.Items = append(out.Items, SearchResult{Object: h.short(), Match: h.match(words)})
	}
	return out
}

// rank returns how well an object fits: 0 is best. All words must occur.
func (e *entry) rank(words []string) (rank int, ok bool) {
	for _, w := range words {
		switch {
		case e.name == w || e.key == w:
		case e.kind == w:
		case strings.HasPrefix(e.name, w):
			rank++
		case strings.Contains(e.key, w):
			rank += 2
		case strings.Contains(e.text, w):
			rank += 3
		default:
			return 0, false
		}
	}
	return rank, true
}

// order is the place of an object among those that fit as well: routes and policies are
// asked for most.
func (e *entry) order() int {
	switch {
	case strings.HasSuffix(e.Ref.Kind, "Route"):
		return 0
	case e.Policy:
		return 1
	case e.Ref.Group != "":
		return 2
	default:
		return 3
	}
}

// match returns the first hostname or rule with a word that is not in the name.
func (e *entry) match(words []string) string {
	for _, w := range words {
		if strings.Contains(e.key, w) || strings.Contains(e.kind, w) {
			continue
		}
		for _, text := range slices.Concat(e.Hostnames, e.Rules) {
			if strings.Contains(strings.ToLower(text), w) {
				return text
			}
		}
	}
	return ""
}

// maxListed is the number of hostnames, rules and targets of an object in results.
const maxListed = 3

func (e *entry) short() Object {
	o := *e.Object
	o.Hostnames, o.Rules, o.Targets = first(o.Hostnames, maxListed), nil, first(o.Targets, maxListed)
	return o
}

func first[T any](all []T, limit int) []T { return all[:min(limit, len(all)):min(limit, len(all))] }

// KindCount is the number of objects of a kind.
type KindCount struct {
	Kind    api.PolicyKind `json:"kind"`
	Policy  bool           `json:"policy,omitempty"`
	Objects int            `json:"objects"`
}

// counts returns the number of objects by kind: policies first, then by group and kind.
func (s *indexed) counts() []KindCount {
	of := make(map[api.PolicyKind]*KindCount)
	for _, e := range s.index() {
		k := e.Ref.PolicyKind()
		if of[k] == nil {
			of[k] = &KindCount{Kind: k, Policy: e.Policy}
		}
		of[k].Objects++
	}
	out := []KindCount{}
	for _, c := range of {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b KindCount) int {
		if a.Policy != b.Policy {
			if a.Policy {
				return -1
			}
			return 1
		}
		return api.ComparePolicyKinds(a.Kind, b.Kind)
	})
	return out
}
