package ratelimit

import (
	"slices"
	"strings"
)

// suggest returns the well-known selector that these segments are nearest to: with
// slips of the pen mended, and parts put in that were left out. "" if none is near.
func suggest(segments []string) string {
	var s search
	s.walk(wellKnown, nil, segments, 0, false)
	return strings.Join(s.best, ".")
}

// search keeps the cheapest way; of several, the first in the order of names.
type search struct {
	best []string
	cost int
}

func (s *search) consider(cost int, path ...[]string) {
	if s.best != nil && cost >= s.cost {
		return
	}
	s.cost, s.best = cost, []string{}
	for _, part := range path {
		s.best = append(s.best, part...)
	}
}

// from looks at what the rest may mean below a place. Behind a part that was put in
// only what is known is meant: anything at all would fit where all is open.
func (s *search) walk(p *attribute, path, rest []string, cost int, inserted bool) {
	switch {
	case len(rest) == 0:
		if p.selectable {
			s.consider(cost, path)
		}
		return
	case p.namePattern != nil:
		s.consider(cost, path, rest) // parts that were spelled well make a name
		return
	}
	names := sortedKeys(p.children)
	for _, name := range names {
		next := append(slices.Clip(path), name)
		if d, near := typoDistance(rest[0], name); near {
			s.walk(p.children[name], next, rest[1:], cost+d, false)
		}
		if len(p.children[name].children) > 0 {
			s.walk(p.children[name], next, rest, cost+1, true)
		}
	}
	if p.openEnded && !inserted && closestWord(rest[0], names) == "" {
		s.consider(cost, path, rest)
	}
}
