package inflight

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// Write is a write to be evaluated.
type Write struct {
	Change guard.Change
	// Precondition returns by what the write is recognized when it is observed. It is
	// called only if the write is admitted.
	Precondition func() Precondition
	// Size of its object in bytes, as it was written.
	Size int64
	// Generated is set if the API server generated the name of a created object.
	Generated bool
	// Finalized is set if the write removes the last finalizer of an object that is
	// being deleted, which deletes it.
	Finalized bool
	// DryRun is set if the write will not be stored.
	DryRun bool
	// Enforcement is the effect of a denial: unless it denies, the write is admitted
	// whatever the decision.
	Enforcement guard.Enforcement
	// Admissible, if set, is called under the lock of the log at the moment when a write
	// that is not a dry run, and changes something, is admitted. If it returns an error,
	// the write is not admitted. It must be fast, and must not call the log.
	Admissible func() error
	// Review, if set, returns the bytes from which another replica can decode the write:
	// the log does not read them. It is called only if the write is admitted.
	Review func() []byte
}

// Precondition is the uid of the object that is written, and the resourceVersion that
// it has before the write: "" if the write creates it.
type Precondition struct {
	UID     types.UID
	Version string
}

// admissible returns why the write must not be admitted, nil if it may be.
func (w Write) admissible() error {
	if w.Admissible == nil {
		return nil
	}
	if err := w.Admissible(); err != nil {
		return fmt.Errorf("admit the write: %w", err)
	}
	return nil
}

// persistent reports whether the write, once stored, changes the evaluation of others.
func (w Write) persistent() bool {
	return !w.DryRun && (w.Finalized || !snapshot.Same(w.Change.Before, w.Change.After))
}

// objects returns the object before and after the write.
func (w Write) objects() []snapshot.Object { return []snapshot.Object{w.Change.Before, w.Change.After} }

// definedKinds returns the policy kinds that the object defines.
func (w Write) definedKinds() []api.PolicyKind {
	var out []api.PolicyKind
	for _, o := range w.objects() {
		switch o := o.(type) {
		case *policykind.Profile:
			out = append(out, api.PolicyKind{Group: o.Spec.Group, Kind: o.Spec.Kind})
		case *policykind.Definition:
			out = append(out, o.Defines())
		}
	}
	return out
}

// removes reports whether the object is deleted once the write is stored, or waits for
// its finalizers.
func (w Write) removes() bool { return w.Change.After == nil || w.Finalized }

// changes returns what the write does to a view that holds objects of its kind.
func (w Write) changes() []snapshot.Change {
	if w.removes() {
		return []snapshot.Change{snapshot.Delete(w.Change.Object().Ref())}
	}
	return []snapshot.Change{snapshot.Put(w.Change.After)}
}

// footprint returns what the write can affect in views.
func (w Write) footprint(views ...*snapshot.View) *effective.Footprint {
	if _, ok := w.Change.Before.(*gateway.Namespace); ok && w.Change.After == nil {
		return effective.Everywhere() // all objects in it are deleted, too
	}
	return effective.FootprintOf(w.objects(), views...)
}

// changesReading reports whether the write changes how the policy of another write is
// decoded.
func (w Write) changesReading(other Write) bool {
	p, ok := other.Change.Object().(*policykind.Policy)
	return ok && slices.Contains(w.definedKinds(), p.Kind.Ref())
}

// errPoliciesInFlight is returned for a write that changes how policies are decoded, while
// such policies are written.
var errPoliciesInFlight = errors.New("policies of its kind are being written")

// readingError returns the error of a write that cannot be evaluated together with
// another one because of how policies are decoded.
func (w Write) readingError() error {
	if len(w.definedKinds()) > 0 {
		return errPoliciesInFlight
	}
	return errKindChanged
}

// errKindChanged is returned if a policy kind has another profile or schema than it had
// when a write was decoded.
var errKindChanged = errors.New("the PolicyProfile or CustomResourceDefinition of this kind has just changed")

// checkKind returns an error unless a view has the kind of a policy as the write was
// decoded with. Without it, the evaluation would find no violation.
func (w Write) checkKind(v *snapshot.View) error {
	if p, ok := w.Change.Object().(*policykind.Policy); ok && v.Kind(p.Kind.Ref()) != p.Kind {
		return fmt.Errorf("%s: %w", p.Ref(), errKindChanged)
	}
	return nil
}
