package inflight

import (
	"hash/maphash"
	"time"
)

// usage is a number of writes and the bytes that they cost.
type usage struct {
	writes int
	bytes  int64
}

func (u usage) plus(o usage) usage  { return usage{u.writes + o.writes, u.bytes + o.bytes} }
func (u usage) minus(o usage) usage { return usage{u.writes - o.writes, u.bytes - o.bytes} }
func (u usage) half() usage         { return usage{u.writes / 2, u.bytes / 2} }

// within reports whether both are at most those of another.
func (u usage) within(o usage) bool { return u.writes <= o.writes && u.bytes <= o.bytes }

// owner is who has a write in flight, and where. Names are hashed: a review that
// is forged may have one of any length.
type owner struct{ namespace, user uint64 }

var ownerSeed = maphash.MakeSeed()

func ownerOf(namespace, user string) owner {
	return owner{maphash.String(ownerSeed, namespace), maphash.String(ownerSeed, user)}
}

// shares count the writes in flight by owner.
type shares struct {
	total      usage
	namespaces map[uint64]usage
	users      map[uint64]usage
	owners     map[owner]usage
}

func newShares() shares {
	return shares{namespaces: make(map[uint64]usage), users: make(map[uint64]usage), owners: make(map[owner]usage)}
}

// admits reports whether there is room for a write of an owner. What a user has,
// and what a namespace has, is never more than what it leaves free for others:
// so there is always room for one that has little, and most for one that is
// alone. In half of all room the same holds between the users of one namespace.
// A write that is alone has room whatever its size.
func (s *shares) admits(o owner, cost, limit usage) bool {
	if s.total.writes == 0 {
		return true
	}
	free := limit.minus(s.total)
	here := s.namespaces[o.namespace]
	return here.plus(cost).within(free) && s.users[o.user].plus(cost).within(free) &&
		s.owners[o].plus(cost).within(limit.half().minus(here))
}

func (s *shares) add(o owner, cost usage) {
	s.total = s.total.plus(cost)
	count(s.namespaces, o.namespace, cost)
	count(s.users, o.user, cost)
	count(s.owners, o, cost)
}

func (s *shares) remove(o owner, cost usage) { s.add(o, usage{}.minus(cost)) }

func count[K comparable](m map[K]usage, at K, cost usage) {
	if m[at] = m[at].plus(cost); m[at] == (usage{}) {
		delete(m, at)
	}
}

// latency follows how long it takes until a write is observed: the longest time
// of this minute and of the one before.
type latency struct {
	since        time.Time
	now, earlier time.Duration
}

const (
	minLatency = 5 * time.Second
	maxLatency = time.Minute
)

func (l *latency) observe(now time.Time, d time.Duration) {
	switch age := now.Sub(l.since); {
	case age >= 2*time.Minute:
		l.since, l.now, l.earlier = now, 0, 0
	case age >= time.Minute:
		l.since, l.now, l.earlier = now, 0, l.now
	}
	l.now = max(l.now, d)
}

// bound returns the longest latency, between minLatency and maxLatency.
func (l *latency) bound() time.Duration {
	return min(max(l.now, l.earlier, minLatency), maxLatency)
}
