package ratelimit

import (
	"slices"
	"strings"

	"overrule.dev/overrule/internal/editdistance"
)

// suggest returns the well-known selector that is closest to the segments, with typos
// corrected and missing segments inserted. It is empty if none is close.
func suggest(segments []string) string {
	var s search
	s.walk(wellKnown, nil, segments, 0, false)
	return strings.Join(s.best, ".")
}

// search keeps the selector of the least cost; of several, the first by name.
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

// walk tries the rest of the segments below an attribute. After an inserted segment
// only known children are tried: an open-ended attribute would allow anything.
func (s *search) walk(p *attribute, path, rest []string, cost int, inserted bool) {
	switch {
	case len(rest) == 0:
		if p.selectable {
			s.consider(cost, path)
		}
		return
	case p.namePattern != nil:
		s.consider(cost, path, rest) // the rest is one name
		return
	}
	names := sortedKeys(p.children)
	for _, name := range names {
		next := append(slices.Clip(path), name)
		if d, near := editdistance.Typo(rest[0], name); near {
			s.walk(p.children[name], next, rest[1:], cost+d, false)
		}
		if len(p.children[name].children) > 0 {
			s.walk(p.children[name], next, rest, cost+1, true)
		}
	}
	if p.openEnded && !inserted && editdistance.Closest(rest[0], names) == "" {
		s.consider(cost, path, rest)
	}
}
