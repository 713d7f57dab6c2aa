package cache

import (
	"hash/maphash"
	"strconv"
	"sync"

	"k8s.io/client-go/tools/cache"
)

// progress is how far a source has come: which state of its resource the target has. The
// sink updates it after the target.
//
// All resourceVersions of one resource are numbers that grow with each write, and a watch
// delivers events in their order.
type progress struct {
	mu sync.Mutex
	// listed is true after the first full list.
	listed bool
	// version is the resourceVersion that the source has reached: no event up to it is
	// missing. A quiet watch advances only by bookmarks, about one a minute.
	version uint64
	// objects has the hash of each object and its resourceVersion, by the hash of its
	// name. It includes those that the target ignores. It takes less memory than names
	// would: two names with the same hash count as one object, so the contents differ
	// from each list until the version is reached.
	objects map[uint64]uint64
	contents
	// changed is closed on the next change; nil if nothing waits for it.
	changed chan struct{}
}

// contents identifies a set of objects, each with its resourceVersion. Two different sets
// have the same contents with a probability of 2^-64.
type contents struct {
	count int
	sum   uint64 // of hashes, so that their order does not matter
}

// seed is random for each process: hashes are never compared across processes.
var seed = maphash.MakeSeed()

// versionHash returns the hash of an object in a version.
func versionHash(name cache.ObjectName, version string) uint64 {
	return maphash.Comparable(seed, struct {
		cache.ObjectName
		version string
	}{name, version})
}

func (c *contents) add(hash uint64) { c.count, c.sum = c.count+1, c.sum+hash }

func (c *contents) remove(hash uint64) { c.count, c.sum = c.count-1, c.sum-hash }

// state is the state of a resource in a consistent list.
type state struct {
	version uint64
	contents
}

// put records that the target has a state of an object.
func (p *progress) put(o objectState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.putLocked(o)
	p.reach(o.version)
}

func (p *progress) putLocked(o objectState) {
	if p.objects == nil {
		p.objects = make(map[uint64]uint64)
	}
	p.drop(o.name)
	hash := versionHash(o.name, o.version)
	p.objects[maphash.Comparable(seed, o.name)] = hash
	p.add(hash)
}

// drop removes an object, if there is one of that name.
func (p *progress) drop(name cache.ObjectName) {
	key := maphash.Comparable(seed, name)
	if old, ok := p.objects[key]; ok {
		delete(p.objects, key)
		p.remove(old)
	}
}

// removed records that the target does not have an object any more; its version is that
// of the deletion.
func (p *progress) removed(o objectState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(o.name)
	p.reach(o.version)
}

// replaced records that the target has the objects of a full list, and no others.
func (p *progress) replaced(all []objectState, version string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listed = true
	p.objects, p.contents = make(map[uint64]uint64, len(all)), contents{}
	for _, o := range all {
		p.putLocked(o)
	}
	p.reach(version)
}

// reached returns the resourceVersion that the source has reached.
func (p *progress) reached() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.version
}

// forget records that the target has no state of the resource until the next full list.
func (p *progress) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listed, p.version = false, 0
}

// passed records that the source has reached a version without an event.
func (p *progress) passed(version string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reach(version)
}

// reach sets the version, unless it is not a number.
func (p *progress) reach(version string) {
	if n, err := strconv.ParseUint(version, 10, 64); err == nil {
		p.version = n
	}
	p.wakeLocked()
}

// wake makes all that wait for a change check their condition again.
func (p *progress) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wakeLocked()
}

func (p *progress) wakeLocked() {
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// next returns a channel that is closed on the next change.
func (p *progress) next() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	return p.changed
}

// has reports whether the target has a state of the resource, or a later one.
//
// Either the source has reached its version: an object of the list that is missing was
// deleted after it, and an additional one was created after it. Or all objects are those
// of the list, in the same versions: the events between the two versions, if any, cannot
// concern objects of the list.
func (p *progress) has(s state) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.listed && (p.version >= s.version || p.contents == s.contents)
}
