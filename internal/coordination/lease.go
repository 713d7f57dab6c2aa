package coordination

import (
	"context"
	"fmt"
	"maps"
	"math"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// Annotations of the Lease.
const (
	// AnnotationProtocol is the version of the protocol that the holder speaks.
	AnnotationProtocol = "overrule.dev/protocol"
	// AnnotationAddress is where the holder accepts connections of other replicas, as
	// HOST:PORT.
	AnnotationAddress = "overrule.dev/peer-address"
	// AnnotationReleased marks a Lease whose holder has stopped evaluating with an
	// empty log: every replica may take it at once. Its value is the former term.
	AnnotationReleased = "overrule.dev/released"
	// AnnotationTransferred marks a Lease that its holder has transferred to the
	// replica that it names as the holder now, after it sent the log of the term in the
	// value.
	AnnotationTransferred = "overrule.dev/transferred"
)

// Protocol is the version of the protocol between replicas. Replicas of different
// versions must not evaluate at the same time.
const Protocol = "1"

// record is the Lease as it was read or written; its Lease is nil if none exists.
type record struct{ lease *coordinationv1.Lease }

func (r record) annotation(key string) string {
	if r.lease == nil {
		return ""
	}
	return r.lease.Annotations[key]
}

func (r record) holder() string {
	if r.lease == nil || r.lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *r.lease.Spec.HolderIdentity
}

func (r record) transitions() int32 {
	if r.lease == nil || r.lease.Spec.LeaseTransitions == nil {
		return 0
	}
	return *r.lease.Spec.LeaseTransitions
}

// term identifies the time for which one process holds the Lease. The uid is part of it
// because a Lease that is created again counts from 0.
func (r record) term() string {
	if r.lease == nil {
		return ""
	}
	return fmt.Sprintf("%s/%d/%s", r.lease.UID, r.transitions(), r.holder())
}

// version changes with each write of the Lease.
func (r record) version() string {
	if r.lease == nil {
		return ""
	}
	return string(r.lease.UID) + "/" + r.lease.ResourceVersion
}

// duration returns how long the Lease is valid, at least a minimum: the holder may have
// another --lease-duration, of at most MaxLease.
func (r record) duration(least time.Duration) time.Duration {
	if r.lease == nil || r.lease.Spec.LeaseDurationSeconds == nil {
		return least
	}
	return max(least, min(time.Duration(*r.lease.Spec.LeaseDurationSeconds)*time.Second, MaxLease))
}

// held returns the Lease as a replica writes it when it acquires or renews it: without a
// mark (rule 5).
func (r record) held(identity, address string, d time.Duration) *coordinationv1.Lease {
	out := r.lease.DeepCopy()
	if out.Annotations == nil {
		out.Annotations = make(map[string]string)
	}
	delete(out.Annotations, AnnotationReleased)
	delete(out.Annotations, AnnotationTransferred)
	out.Annotations[AnnotationProtocol], out.Annotations[AnnotationAddress] = Protocol, address
	now := metav1.NowMicro()
	seconds := int32(min(math.Ceil(d.Seconds()), math.MaxInt32))
	out.Spec.HolderIdentity, out.Spec.RenewTime, out.Spec.LeaseDurationSeconds = &identity, &now, &seconds
	return out
}

// acquired returns the Lease as a replica writes it when it acquires it.
func (r record) acquired(identity, address string, d time.Duration) *coordinationv1.Lease {
	transitions := r.transitions() + 1
	out := r.held(identity, address, d)
	out.Spec.AcquireTime, out.Spec.LeaseTransitions = out.Spec.RenewTime, &transitions
	return out
}

// marked returns the Lease with a mark, and a holder and its address.
func (r record) marked(mark, holder, address string) *coordinationv1.Lease {
	out := r.lease.DeepCopy()
	annotations := maps.Clone(out.Annotations)
	annotations[mark], annotations[AnnotationAddress] = r.term(), address
	out.Annotations, out.Spec.HolderIdentity = annotations, &holder
	return out
}

// leases reads and writes the Lease.
type leases struct {
	client coordinationv1client.LeaseInterface
	name   string
}

// read returns the Lease as it is stored, not as a cache has it.
func (l leases) read(ctx context.Context) (record, error) {
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	lease, err := l.client.Get(ctx, l.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return record{}, nil
	case err != nil:
		return record{}, fmt.Errorf("read the Lease %s: %w", l.name, err)
	}
	return record{lease}, nil
}

// write updates the Lease, unless it has changed since it was read (a conflict), or
// creates it if it has no resourceVersion.
func (l leases) write(ctx context.Context, lease *coordinationv1.Lease) (record, error) {
	ctx, cancel := context.WithTimeout(ctx, leaseTimeout)
	defer cancel()
	put := func() (*coordinationv1.Lease, error) {
		if lease.ResourceVersion == "" {
			return l.client.Create(ctx, lease, metav1.CreateOptions{})
		}
		return l.client.Update(ctx, lease, metav1.UpdateOptions{})
	}
	out, err := put()
	if err != nil {
		return record{}, fmt.Errorf("write the Lease %s: %w", l.name, err)
	}
	return record{out}, nil
}

// changed reports whether a write failed because another client has written or deleted
// the Lease.
func changed(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err)
}
