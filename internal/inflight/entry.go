package inflight

import (
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// entry is a write in the log.
type entry struct {
	write        Write // without what is not needed any more
	ref          api.Ref
	precondition Precondition
	review       []byte // nil if it is not known
	user         string
	owner        owner
	cost         usage

	seq        uint64
	admittedAt time.Time
	checkAfter time.Time // when to call ReadStored again
	observedAt time.Time // of the first observation; set for entries in relisting
	// endedAt is set when the write was observed or has expired, to the endSeq of that.
	// The entry stays as long as an evaluation runs whose view may be older.
	endedAt uint64
	// footprint is that of the write alone, in all views since it was first traced; nil
	// before.
	footprint *effective.Footprint
}

// newEntry returns an entry for a write that is not in the log yet.
func newEntry(w Write) *entry {
	e := &entry{write: w, ref: w.Change.Object().Ref(), precondition: w.Precondition()}
	if w.Review != nil {
		e.review = w.Review()
	}
	if u := w.Change.User; u != nil {
		e.user = u.Username
	}
	e.write.Change.User, e.write.Precondition, e.write.Admissible, e.write.Review = nil, nil, nil, nil
	if policy, ok := w.Change.After.(*policykind.Policy); ok {
		e.write.Change.After = policy.Pack()
	}
	e.cost = usage{1, e.bytes()}
	return e
}

const (
	// entryOverhead is about the bytes that an entry takes besides its object and the names
	// in its footprint, bytesPerName those of a name in the footprint and the index.
	entryOverhead = 1 << 10
	bytesPerName  = 200
)

// bytes returns about the memory that the entry takes.
func (e *entry) bytes() int64 {
	n := entryOverhead + e.write.Size + int64(len(e.review))
	if e.footprint != nil {
		n += bytesPerName * int64(e.footprint.Len())
	}
	return n
}

// unknownNamespace is the owner of writes in namespaces that the view does not have: they
// share one quota, since a forged review can name any namespace.
const unknownNamespace = "?"

// setOwner sets the owner of the entry, given the current view.
func (e *entry) setOwner(v *snapshot.View) {
	namespace := e.ref.Namespace
	if namespace != "" && v.Get((&gateway.Namespace{Name: namespace}).Ref()) == nil {
		namespace = unknownNamespace
	}
	e.owner = ownerOf(namespace, e.user)
}

// observedBy reports whether an observation is of the write, or of a later state of its
// object. The versions of one resource are comparable across objects.
func (e *entry) observedBy(s snapshot.Observation) bool {
	if e.write.Change.Operation == guard.Create {
		return e.precondition.UID != "" && s.UID == e.precondition.UID
	}
	if s.Deleted && (s.UID == "" || s.UID == e.precondition.UID) {
		return true
	}
	return s.Version != "" && newer(s.Version, e.precondition.Version)
}

// newer reports whether a resourceVersion is newer than another; versions that are not
// comparable count as newer if they differ.
func newer(version, than string) bool {
	c, err := resourceversion.CompareResourceVersion(version, than)
	if err != nil {
		return version != than
	}
	return c > 0
}
