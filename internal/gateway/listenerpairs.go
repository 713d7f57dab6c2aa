package gateway

import api "overrule.dev/overrule/api/v1alpha1"

// MatchListeners pairs the listeners of a gateway before and after a change by the
// requests that they take: by port, protocol and hostname, with the name deciding between
// listeners that conflict; then by name. It returns for each listener after the change
// its position before, or -1; nil if each is paired with the one of its name.
func MatchListeners(before, after []ListenerMatch) []int {
	type named struct {
		parent api.Ref
		name   string
	}
	type taking struct {
		port      int32
		transport Transport
		hostname  string
	}
	nameOf := func(l *ListenerMatch) named { return named{l.Parent(), l.Listener.Name} }
	takes := func(l *ListenerMatch) taking {
		return taking{l.Listener.Port, l.Listener.transport(), l.Listener.Hostname}
	}
	byName, byRequests := make(map[named]int, len(before)), make(map[taking][]int, len(before))
	for b := range before {
		byName[nameOf(&before[b])] = b
		byRequests[takes(&before[b])] = append(byRequests[takes(&before[b])], b)
	}
	out, taken, renamed := make([]int, len(after)), make([]bool, len(before)), false
	pair := func(a int, b int, ok bool) {
		if ok && out[a] < 0 && !taken[b] {
			out[a], taken[b] = b, true
			renamed = renamed || !before[b].Same(&after[a])
		}
	}
	for a := range after {
		out[a] = -1
		b, ok := byName[nameOf(&after[a])]
		pair(a, b, ok && before[b].sameRequests(&after[a]))
	}
	for a := range after {
		for _, b := range byRequests[takes(&after[a])] {
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

// ListenersBefore has for each listener of a gateway after a change the one before with
// which it is paired, none for those without. It is nil if each is paired with the one of
// its name.
type ListenersBefore map[*Listener]*ListenerMatch

// PairListeners pairs listeners as MatchListeners does.
func PairListeners(before, after []ListenerMatch) ListenersBefore {
	pairs := MatchListeners(before, after)
	if pairs == nil {
		return nil
	}
	out := make(ListenersBefore, len(pairs))
	for a, b := range pairs {
		if b >= 0 {
			out[after[a].Listener] = &before[b]
		}
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

// sameRequests reports whether two listeners take the same requests.
func (m *ListenerMatch) sameRequests(o *ListenerMatch) bool {
	return m.Listener.SamePort(o.Listener) && m.Listener.Hostname == o.Listener.Hostname
}
