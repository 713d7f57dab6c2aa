package gateway

import (
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
)

// ListenersBefore has for each listener of a gateway after a change the one before with
// which it is paired, none for those without. It is nil if each is paired with the one of
// its name.
type ListenersBefore map[*Listener]*ListenerMatch

// PairListeners pairs the listeners of a gateway before and after a change by the requests
// that they take: by port, protocol and hostname, with the name deciding between listeners
// that conflict; then by name.
func PairListeners(before, after []ListenerMatch) ListenersBefore {
	if slices.EqualFunc(before, after, func(b, a ListenerMatch) bool { return b.Same(&a) && b.sameRequests(&a) }) {
		return nil
	}
	type named struct {
		parent api.Ref
		name   string
	}
	nameOf := func(l *ListenerMatch) named { return named{l.Parent(), l.Listener.Name} }
	byName, byRequests := make(map[named]int, len(before)), make(map[listenerKey][]int, len(before))
	for b := range before {
		byName[nameOf(&before[b])] = b
		byRequests[before[b].key()] = append(byRequests[before[b].key()], b)
	}
	out, taken, renamed := make(ListenersBefore, len(after)), make([]bool, len(before)), false
	pair := func(a int, b int, ok bool) {
		if l := after[a].Listener; ok && out[l] == nil && !taken[b] {
			out[l], taken[b] = &before[b], true
			renamed = renamed || !before[b].Same(&after[a])
		}
	}
	for a := range after {
		b, ok := byName[nameOf(&after[a])]
		pair(a, b, ok && before[b].sameRequests(&after[a]))
	}
	for a := range after {
		for _, b := range byRequests[after[a].key()] {
			pair(a, b, true)
		}
	}
	for a := range after {
		b, ok := byName[nameOf(&after[a])]
		pair(a, b, ok)
	}
	if !renamed {
		return nil
	}
	return out
}

// ID returns the identity that a path after the change had before it, but for its rule: it
// is that of no path if its listener has no pair.
func (l ListenersBefore) ID(p Path) ID {
	if l != nil && p.Listener != nil {
		was := l[p.Listener]
		if was == nil {
			was = &ListenerMatch{Listener: new(Listener)}
		}
		p.Set, p.Listener = was.Set, was.Listener
	}
	return p.ID()
}
