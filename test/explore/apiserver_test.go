package explore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/coordination"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/inflight"
	"overrule.dev/overrule/internal/snapshot"
)

// storedObject is an object in the table of the API server.
type storedObject struct {
	object  snapshot.Object
	uid     types.UID
	version int
}

// event is a change of the table. The object is nil if it was deleted.
type event struct {
	ref api.Ref
	storedObject
}

func (e event) observation() snapshot.Observation {
	return snapshot.Observation{Ref: e.ref, UID: e.uid, Version: strconv.Itoa(e.version), Deleted: e.object == nil}
}

// apiServer is a table of objects, and a Lease. Its clock is that of the bubble.
type apiServer struct {
	mu      sync.Mutex
	objects map[api.Ref]storedObject
	version int
	events  []event
	// storedWrites are the changes that were stored, in their order.
	storedWrites []storedWrite

	lease         *coordinationv1.Lease // nil if it was deleted
	leaseVersions int
	// edited: no replica has acquired the Lease since someone else wrote it.
	edited bool
	// lapses counts the acquisitions of a Lease that had run out.
	lapses int
}

// newAPIServer returns an API server with objects of version 1, and a Lease that any
// replica may take.
func newAPIServer(objects []snapshot.Object) *apiServer {
	holder, transitions := "", int32(0)
	s := &apiServer{objects: make(map[api.Ref]storedObject), version: 1, lease: &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: "overrule", UID: "lease", ResourceVersion: "0",
			Annotations: map[string]string{coordination.AnnotationReleased: "none"},
		},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseTransitions: &transitions},
	}}
	for _, o := range objects {
		s.objects[o.Ref()] = storedObject{o, types.UID("initial-" + o.Ref().Name), s.version}
	}
	return s
}

// review is what the API server sends to a webhook.
type review struct {
	change       guard.Change
	precondition inflight.Precondition
	stored       int // writes that were stored before
}

// newReview returns the review of a write at this moment. It returns false if the write
// fails before that.
func (s *apiServer) newReview(op guard.Operation, o snapshot.Object, uid types.UID) (review, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := review{change: guard.Change{Operation: op, After: o}, precondition: inflight.Precondition{UID: uid}, stored: len(s.storedWrites)}
	if op == guard.Create {
		return r, true
	}
	before, ok := s.objects[o.Ref()]
	r.change.Before, r.precondition = before.object, inflight.Precondition{UID: before.uid, Version: strconv.Itoa(before.version)}
	if op == guard.Delete {
		r.change.After = nil
	}
	return r, ok
}

// store stores a write that was admitted, unless its object has changed since the review.
func (s *apiServer) store(r review) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	ref := r.change.Object().Ref()
	before, exists := s.objects[ref]
	if r.change.Operation == guard.Create && exists ||
		r.change.Operation != guard.Create && (!exists || strconv.Itoa(before.version) != r.precondition.Version) {
		return false
	}
	s.version++
	after := storedObject{r.change.After, r.precondition.UID, s.version}
	if after.object == nil {
		delete(s.objects, ref)
	} else {
		s.objects[ref] = after
	}
	s.events = append(s.events, event{ref, after})
	s.storedWrites = append(s.storedWrites, storedWrite{r.change, r.stored})
	return true
}

// read returns an object as it is stored.
func (s *apiServer) read(ref api.Ref) snapshot.Observation {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[ref]
	if !ok {
		return snapshot.Observation{Ref: ref, Deleted: true}
	}
	return event{ref, o}.observation()
}

// list returns all objects, and the number of events that it includes.
func (s *apiServer) list() (out []event, events int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ref, o := range s.objects {
		out = append(out, event{ref, o})
	}
	return out, len(s.events)
}

// eventsFrom returns the events from a position.
func (s *apiServer) eventsFrom(position int) []event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.events[position:]
}

var leaseResource = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

// writeLease creates or updates the Lease.
func (s *apiServer) writeLease(lease *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := lease.DeepCopy()
	s.leaseVersions++
	switch {
	case s.lease == nil && lease.ResourceVersion != "":
		return nil, apierrors.NewNotFound(leaseResource, lease.Name)
	case s.lease == nil:
		out.UID = types.UID(fmt.Sprint("lease-", s.leaseVersions))
	case lease.ResourceVersion != s.lease.ResourceVersion:
		return nil, apierrors.NewConflict(leaseResource, lease.Name, errConflict)
	}
	if acquired(s.lease, lease) {
		s.edited = false
		if lapsed(s.lease, lease) {
			s.lapses++
		}
	}
	out.ResourceVersion = strconv.Itoa(s.leaseVersions)
	s.lease = out
	return out.DeepCopy(), nil
}

// editLease changes the Lease as a user does: it is deleted, names a replica that did not
// acquire it, or is replaced by another one that does.
func (s *apiServer) editLease(a action, holder string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.edited = true
	s.leaseVersions++
	out := s.lease.DeepCopy()
	out.Spec.HolderIdentity, out.ResourceVersion = &holder, strconv.Itoa(s.leaseVersions)
	switch a {
	case deleteLease:
		out = nil
	case replaceLease:
		out.UID = types.UID(fmt.Sprint("lease-", s.leaseVersions))
	default:
	}
	s.lease = out
}

// acquired reports whether a replica writes the Lease in a new term.
func acquired(before, after *coordinationv1.Lease) bool {
	return before == nil || *after.Spec.LeaseTransitions != *before.Spec.LeaseTransitions
}

// lapsed reports whether a Lease is acquired that its holder has not given away.
func lapsed(before, after *coordinationv1.Lease) bool {
	if before == nil {
		return true
	}
	transferred := before.Annotations[coordination.AnnotationTransferred] != "" && *before.Spec.HolderIdentity == *after.Spec.HolderIdentity
	return before.Annotations[coordination.AnnotationReleased] == "" && !transferred
}

var (
	errConflict     = errors.New("the object has been modified")
	errDisconnected = errors.New("connection refused")
)

// leaseClient is the connection of a replica to the Lease.
type leaseClient struct {
	coordinationv1client.LeaseInterface
	replica *replica
}

func (c leaseClient) Get(ctx context.Context, _ string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	if err := c.replica.reachAPIServer(ctx); err != nil {
		return nil, err
	}
	s := c.replica.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease == nil {
		return nil, apierrors.NewNotFound(leaseResource, "overrule")
	}
	return s.lease.DeepCopy(), c.replica.response()
}

func (c leaseClient) Create(ctx context.Context, lease *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	return c.Update(ctx, lease, metav1.UpdateOptions{})
}

func (c leaseClient) Update(ctx context.Context, lease *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	if err := c.replica.reachAPIServer(ctx); err != nil {
		return nil, err
	}
	out, err := c.replica.server.writeLease(lease)
	if err == nil {
		err = c.replica.response()
	}
	return out, err
}
