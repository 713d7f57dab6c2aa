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

// entry is the state of an object that may have marks.
type entry struct {
	uid   types.UID
	marks snapshot.Marks
	// lastWrite is the time of the controller's last write, and rewrites how many
	// writes in a row followed closely on the previous one.
	lastWrite time.Time
	rewrites  int
}

// maxWriteInterval is the longest interval between two writes of an object.
const maxWriteInterval = time.Minute

// writeInterval is the minimum time between two writes of an object. It grows with the
// number of recent writes: the controller must not fight a client that removes the
// marks, nor write an object continuously that changes all the time.
func (e entry) writeInterval(every time.Duration) time.Duration {
	return min(every<<min(e.rewrites, 16), max(every, maxWriteInterval))
}

// inventory has an entry for each object that may have marks, so that marks are
// compared without requests.
type inventory struct {
	mu      sync.Mutex
	entries map[api.Ref]entry
}

// observe records observations and returns the objects whose marks or uid changed.
func (i *inventory) observe(observations []snapshot.Observation) []api.Ref {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.entries == nil {
		i.entries = make(map[api.Ref]entry)
	}
	var out []api.Ref
	for _, s := range observations {
		previous, known := i.entries[s.Ref]
		switch {
		case !hasMarks(s.Ref.PolicyKind()):
		case s.Deleted:
			delete(i.entries, s.Ref)
		case !known || previous.uid != s.UID || previous.marks != s.Marks:
			i.entries[s.Ref] = entry{uid: s.UID, marks: s.Marks, lastWrite: previous.lastWrite, rewrites: previous.rewrites}
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

// recordWrite records a write.
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

// all returns the objects of a namespace, or all objects if namespace is "", sorted.
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

// hasMarks reports whether objects of a kind may have marks. Kinds that cannot have any
// are known by name; all other kinds are policy kinds.
func hasMarks(k api.PolicyKind) bool {
	switch {
	case gateway.Known(k):
		return gateway.IsRoute(k) || hasConditions(k)
	default:
		return k.Group != api.Group && k != policykind.KindDefinition
	}
}

// hasConditions reports whether the marks of objects of a kind are conditions. Services
// and Namespaces have conditions, too, but permission to write the status of all
// Services would include where their traffic comes in.
func hasConditions(k api.PolicyKind) bool {
	return k.Group == api.GatewayGroup &&
		slices.Contains([]string{gateway.KindGatewayClass, gateway.KindGateway, gateway.KindListenerSet}, k.Kind)
}
