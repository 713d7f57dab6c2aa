package inflight

import (
	"hash/maphash"
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

// owner is the namespace and the user of a write in flight. Names are hashed: those in a
// forged review can have any length.
type owner struct{ namespace, user uint64 }

var ownerSeed = maphash.MakeSeed()

func ownerOf(namespace, user string) owner {
	return owner{maphash.String(ownerSeed, namespace), maphash.String(ownerSeed, user)}
}

// shares counts the writes in flight by owner.
type shares struct {
	total      usage
	namespaces map[uint64]usage
	users      map[uint64]usage
	owners     map[owner]usage
}

func newShares() shares {
	return shares{namespaces: make(map[uint64]usage), users: make(map[uint64]usage), owners: make(map[owner]usage)}
}

// admits reports whether a write of an owner is within the limit. The usage of a user,
// and of a namespace, is never more than what remains for others: so there is always
// room for an owner that uses little, and most for one that is alone. Within half of the
// limit the same holds between the users of one namespace. A write that is alone is
// admitted whatever its size.
func (s *shares) admits(o owner, cost, limit usage) bool {
	if s.total.writes == 0 {
		return true
	}
	free := limit.minus(s.total)
	inNamespace := s.namespaces[o.namespace]
	return inNamespace.plus(cost).within(free) && s.users[o.user].plus(cost).within(free) &&
		s.owners[o].plus(cost).within(limit.half().minus(inNamespace))
}

func (s *shares) add(o owner, cost usage) {
	s.total = s.total.plus(cost)
	addUsage(s.namespaces, o.namespace, cost)
	addUsage(s.users, o.user, cost)
	addUsage(s.owners, o, cost)
}

func (s *shares) remove(o owner, cost usage) { s.add(o, usage{}.minus(cost)) }

// addUsage adds to the usage of a key.
func addUsage[K comparable](m map[K]usage, at K, cost usage) {
	if m[at] = m[at].plus(cost); m[at] == (usage{}) {
		delete(m, at)
	}
}
