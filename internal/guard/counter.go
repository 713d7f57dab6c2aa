package guard

import (
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
)

// pathCounter counts paths, each once, unit by unit.
type pathCounter struct {
	counted int                     // of units before, and those that come once for certain
	unit    int                     // the current one
	ids     map[gateway.ID]struct{} // of it
}

// add counts the path of a pair. once is set if only one kind is counted: then each path
// comes once, unless it is one of a mesh, where several may become one.
func (p *pathCounter) add(pair *effective.Pair, once bool) {
	path := &pair.Effective().Path
	if once && path.Service == nil {
		p.counted++
		return
	}
	if p.unit != pair.Unit {
		p.counted += len(p.ids)
		clear(p.ids)
		p.unit = pair.Unit
	}
	if p.ids == nil {
		p.ids = make(map[gateway.ID]struct{})
	}
	p.ids[path.ID()] = struct{}{}
}

func (p *pathCounter) count() int { return p.counted + len(p.ids) }

// nameSet is a set that is mostly given the same name several times in a row.
type nameSet struct {
	all  map[string]struct{}
	last string
}

func (n *nameSet) add(name string) {
	if n.all != nil && n.last == name {
		return
	}
	if n.all == nil {
		n.all = make(map[string]struct{})
	}
	n.all[name], n.last = struct{}{}, name
}

func (n *nameSet) count() int { return len(n.all) }

// hasOther reports whether a name other than one is in the set.
func (n *nameSet) hasOther(than string) bool {
	_, has := n.all[than]
	return len(n.all) > btoi(has)
}
