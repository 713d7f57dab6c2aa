package guard_test

import (
	"fmt"
	"maps"
	"slices"
)

// The second implementation: slow and obvious. It computes all paths of both
// worlds, what holds on each before, and who gives it afterwards.

// pairs returns for each rule after an edit its place before it, or -1: by the
// matches, then by name, then by the place of those without a name.
func pairs(before, after *plainRoute) []int {
	out := slices.Repeat([]int{-1}, len(after.Rules))
	for _, same := range []func(b, a int) bool{
		func(b, a int) bool {
			return sameMatches(before.Rules[b], after.Rules[a]) && before.Rules[b].Name == after.Rules[a].Name
		},
		func(b, a int) bool { return sameMatches(before.Rules[b], after.Rules[a]) },
		func(b, a int) bool { return before.Rules[b].Name != "" && before.Rules[b].Name == after.Rules[a].Name },
		func(b, a int) bool { return a == b && before.Rules[b].Name == "" && after.Rules[a].Name == "" },
	} {
		for a := range after.Rules {
			for b := range before.Rules {
				if out[a] < 0 && !slices.Contains(out, b) && same(b, a) {
					out[a] = b
				}
			}
		}
	}
	return out
}

// sameMatches reports whether two rules have the same matches, in any order.
func sameMatches(a, b plainRule) bool {
	sorted := func(r plainRule) []string { return slices.Compact(slices.Sorted(slices.Values(r.Matches))) }
	return slices.Equal(sorted(a), sorted(b))
}

// plainLoss is an override that is lost.
type plainLoss struct {
	policy plainName
	rule   string
	code   string
}

func (l plainLoss) String() string { return fmt.Sprintf("%s %s of %s", l.code, l.rule, l.policy) }

// losses are the overrides that a change takes, which writes an object of that
// name, and whether requests on which an override held are served by other rules.
func losses(before, after plainWorld, written plainName) (lost []string, moves bool) {
	var out []string
	requests, readings := plainRequests, plainReadings[:4]
	if before.hasExpressions() || after.hasExpressions() {
		requests, readings = plainRequestsOfExpressions, plainReadings
	}
	traffic := plainTraffic{before: before, after: after, written: written, requests: requests, was: before.traffic(requests, readings), is: after.traffic(requests, readings)}
	for _, kind := range slices.Sorted(maps.Keys(plainLevels)) {
		paths, known := append(after.paths(kind), after.unreadPaths(kind)...), make(map[string]bool)
		pairEntries(before, after, paths)
		for _, x := range append(before.paths(kind), before.unreadPaths(kind)...) {
			known[x.name(x.rule)] = true
			if x.unread {
				known[x.route.key().String()] = true
			}
		}
		for _, x := range before.paths(kind) {
			for _, o := range before.held(x) {
				if traffic.loses(o, x, paths, known) {
					out = append(out, plainLoss{o.key(), o.rule, after.code(o, written)}.String())
				}
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out), traffic.moves
}

// code distinguishes what its own policy gives up from what is lost otherwise.
func (w plainWorld) code(o plainOverride, written plainName) string {
	if o.key() != written {
		return "OverrideEvaded"
	}
	p, there := get[plainPolicy](w, written)
	b := p.Overrides
	value, has := b.Rules[o.rule]
	if there && has && value == o.value && (b.When == "" || b.When == o.When) && (b.Atomic || !o.Atomic) {
		return "OverrideEvaded"
	}
	return "OverrideRemoved"
}

// ownLosses are the overrides that a policy has in its own block before a change and not
// as it has them before after it, wherever they hold.
func ownLosses(before, after plainWorld, written plainName) []plainLoss {
	p, _ := get[plainPolicy](before, written)
	q, there := get[plainPolicy](after, written)
	var out []plainLoss
	for rule, value := range p.Overrides.Rules {
		now, has := q.Overrides.Rules[rule]
		kept := there && has && now == value && (q.Overrides.When == "" || q.Overrides.When == p.Overrides.When) && (q.Overrides.Atomic || !p.Overrides.Atomic)
		if !kept {
			out = append(out, plainLoss{written, rule, "OverrideRemoved"})
		}
	}
	return out
}

// losesByName reports whether an override that held on a path that ends above routes is
// not given on one that takes its traffic after.
func (w plainWorld) losesByName(o plainOverride, x plainPath, paths []plainPath, known map[string]bool) bool {
	for _, y := range paths {
		if y.earlier(x) == x.name(x.rule) {
			return !w.given(o, y)
		}
	}
	return slices.ContainsFunc(w.successors(o, x, paths, known), func(y plainPath) bool {
		return !w.given(o, y) && (!y.unread || o.level < atRouteNamespace)
	})
}

// earlier is the name that a path had before the change.
func (p plainPath) earlier(x plainPath) string {
	if p.route == nil || x.route == nil || p.route.key() != x.route.key() {
		return p.nameAt(p.was, p.rule)
	}
	return p.nameAt(p.was, pairs(x.route, p.route)[p.rule])
}

// successors are the paths that take the traffic of a path: if some come in by the
// same listener, these alone; else if new ones take all of its names, those.
func (w plainWorld) successors(o plainOverride, x plainPath, paths []plainPath, known map[string]bool) []plainPath {
	var out, same, fresh, found []plainPath
	for _, y := range paths {
		was := known[y.earlier(x)]
		if y.unread {
			was = known[y.route.key().String()] // it came in that way before, by whichever rule
		}
		if !y.follows(o, x, was) || was && !shareHosts(x, y) {
			continue
		}
		out = append(out, y)
		if !y.unread && (x.entry() == y.was || x.route == nil && y.wasOn(x)) {
			same = append(same, y)
		}
		if !was && !y.unread {
			found = append(found, y)
		}
		if !was {
			fresh = append(fresh, y)
		}
	}
	switch {
	case len(same) > 0:
		return same
	case x.covered(found):
		return fresh
	default:
		return out
	}
}

// follows reports whether a path may take the traffic of one before the change.
func (p plainPath) follows(o plainOverride, x plainPath, known bool) bool {
	if x.route == nil {
		near := p.gateway.key() == x.gateway.key() || p.set != nil && p.owner() == x.owner()
		return near && (p.wasOn(x) || !known && p.listener.Port == x.listener.Port)
	}
	if p.route.key() != x.route.key() || o.level >= atBackend && !slices.Contains(p.insteadOf(x), p.backend) {
		return false
	}
	paired := pairs(x.route, p.route)
	was := paired[p.rule]
	if !slices.Contains(paired, x.rule) && (o.level == atRule || o.level >= atBackend && was == -1) {
		return true
	}
	return was == x.rule || takesMatches(x, p, was)
}

// wasOn reports whether the listener of a path is that of another one, which may
// have been on another gateway.
func (p plainPath) wasOn(x plainPath) bool {
	return p.owner() == x.owner() && p.listener.Name == x.listener.Name
}

// isSent reports whether the backend of a path is sent anything.
func (p plainPath) isSent() bool { return slices.Contains(p.route.Rules[p.rule].sentTo(), p.backend) }

func (r plainRule) sentTo() []string {
	return slices.DeleteFunc(slices.Clone(r.Backends), func(b string) bool { return slices.Contains(r.Off, b) })
}

// insteadOf are the backends to which the rule of a path sends what another path
// had before, if it takes it: the same one, or else those that are new to it, or
// else all.
func (p plainPath) insteadOf(x plainPath) []string {
	before, after := x.route.Rules[x.rule].sentTo(), p.route.Rules[p.rule].sentTo()
	fresh := slices.DeleteFunc(slices.Clone(after), func(b string) bool { return slices.Contains(before, b) })
	switch {
	case !x.isSent():
		return nil
	case slices.Contains(after, x.backend):
		return []string{x.backend}
	case len(fresh) > 0:
		return fresh
	default:
		return after
	}
}

// takesMatches reports whether a rule has a match of another one's, which it
// did not have itself.
func takesMatches(x, y plainPath, was int) bool {
	return slices.ContainsFunc(y.route.Rules[y.rule].Matches, func(m string) bool {
		own := was >= 0 && slices.Contains(x.route.Rules[was].Matches, m)
		return !own && slices.Contains(x.route.Rules[x.rule].Matches, m)
	})
}
