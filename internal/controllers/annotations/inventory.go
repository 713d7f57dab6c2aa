package annotations

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// entry is what is known of an object that may have marks.
type entry struct {
	uid   types.UID
	marks snapshot.Marks
	// wrote is when it was last written here, and again how often that followed
	// closely on the time before.
	lastWrite time.Time
	rewrites  int
}

// seldom is the longest that an object waits for its next write.
const maxWriteInterval = time.Minute

// rest is how long an object is left alone after a write: the longer, the more often
// it was written lately. Somebody who takes our marks off each time is not fought, and
// one that changes all the time is not written all the time.
func (e entry) writeInterval(every time.Duration) time.Duration {
	return min(every<<min(e.rewrites, 16), max(every, maxWriteInterval))
}

// inventory has an entry for each object that may have marks: what stands on it is
// compared without a request.
type inventory struct {
	mu      sync.Mutex
	entries map[api.Ref]entry
}

// note books what was seen, and returns what of it says something new.
func (i *inventory) observe(seen []snapshot.Observation) []api.Ref {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.entries == nil {
		i.entries = make(map[api.Ref]entry)
	}
	var out []api.Ref
	for _, s := range seen {
		was, known := i.entries[s.Ref]
		switch {
		case !hasMarks(s.Ref.PolicyKind()):
		case s.Deleted:
			delete(i.entries, s.Ref)
		case !known || was.uid != s.UID || was.marks != s.Marks:
			i.entries[s.Ref] = entry{uid: s.UID, marks: s.Marks, lastWrite: was.lastWrite, rewrites: was.rewrites}
			out = append(out, s.Ref)
		}
	}
	return out
}

func (i *inventory) get(ref api.Ref) (entry, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	e, ok := i.entries[ref]
	return e, ok
}

// wrote books a write.
func (i *inventory) recordWrite(ref api.Ref, at time.Time, every time.Duration) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if e, ok := i.entries[ref]; ok {
		if at.Sub(e.lastWrite) < 2*e.writeInterval(every) {
			e.rewrites++
		} else {
			e.rewrites = 0
		}
		e.lastWrite = at
		i.entries[ref] = e
	}
}

// all returns the objects of a namespace, or all of them where that is "", sorted.
func (i *inventory) all(namespace string) []api.Ref {
	i.mu.Lock()
	var out []api.Ref
	for ref := range i.entries {
		if namespace == "" || ref.Namespace == namespace {
			out = append(out, ref)
		}
	}
	i.mu.Unlock()
	slices.SortFunc(out, api.CompareRefs)
	return out
}

// marked reports whether objects of a kind may have marks: all that is no policy is
// known by name.
func hasMarks(k api.PolicyKind) bool {
	switch {
	case gateway.Known(k):
		return gateway.IsRoute(k) || hasConditions(k)
	default:
		return k.Group != api.Group && k != policykind.KindDefinition
	}
}

// conditioned reports whether objects of a kind of the hierarchy have conditions for
// the object as a whole. A Service and a Namespace have, too; but the right to write
// the status of every Service is the right to say where its traffic comes in.
func hasConditions(k api.PolicyKind) bool {
	return k.Group == api.GatewayGroup &&
		slices.Contains([]string{gateway.KindGatewayClass, gateway.KindGateway, gateway.KindListenerSet}, k.Kind)
}
