package guard

import (
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
)

// paths counts paths, each once, unit by unit.
type paths struct {
	told int                     // of units before, and those that come once for certain
	unit int                     // at hand
	ids  map[gateway.ID]struct{} // of it
}

// add counts the path of a pair. once tells that it is of the only kind that is
// counted: it then comes once, unless it is one of a mesh, where several may
// become one.
func (p *paths) add(pair *effective.Pair, once bool) {
	path := &pair.Effective().Path
	if once && path.Service == nil {
		p.told++
		return
	}
	if p.unit != pair.Unit {
		p.told += len(p.ids)
		clear(p.ids)
		p.unit = pair.Unit
	}
	if p.ids == nil {
		p.ids = make(map[gateway.ID]struct{})
	}
	p.ids[path.ID()] = struct{}{}
}

func (p *paths) count() int { return p.told + len(p.ids) }

// like is what holds of all pairs of the same effective policies: on a gateway
// without policies below, of every path.
type like struct {
	kind          *policykind.Kind
	before, after *merge.Result
	changed       bool
	lostGroups    []string
	lost          []*overrideTally // overrides, each once
	at            *gateway.Path    // after the write, nil where overrides on routes are lost
}

// lose adds an override that is lost at a level.
func (l *like) lose(t *overrideTally, at gateway.Level) {
	l.lost = append(l.lost, t)
	if at >= gateway.LevelRoute {
		l.at = nil
	}
}

// likeOf returns what a pair is like; room is for its losses.
func likeOf(p effective.Pair, room []*overrideTally) like {
	l := like{changed: p.Changed(), lost: room}
	if p.Before == nil || p.After == nil {
		return l
	}
	l.kind, l.before, l.after, l.at = p.After.Kind, p.Before.Result, p.After.Result, &p.After.Path
	if l.changed {
		l.lostGroups = lostGroups(p)
	}
	return l
}

// same reports whether another pair is of the same effective policies. What becomes of
// overrides depends on what the policies rest on, too.
func (l *like) same(p effective.Pair) bool {
	return l.kind != nil && p.Before != nil && p.After != nil &&
		p.After.Kind == l.kind && p.Before.Result == l.before && p.After.Result == l.after &&
		(len(l.lost) == 0 || l.at != nil && alike(l.at, &p.After.Path))
}

// names is a set that is mostly given the name that it was given before.
type names struct {
	all  map[string]struct{}
	last string
}

func (n *names) add(name string) {
	if n.all != nil && n.last == name {
		return
	}
	if n.all == nil {
		n.all = make(map[string]struct{})
	}
	n.all[name], n.last = struct{}{}, name
}

func (n *names) count() int { return len(n.all) }
