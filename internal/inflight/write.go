package inflight

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// Write is a write to be judged.
type Write struct {
	Change guard.Change
	// Precondition tells by what the write will be known when it is seen. It is asked
	// only if the write is admitted.
	Precondition func() Precondition
	// MaxBytes of its object in bytes, as it was written.
	Size int64
	// Generated tells that the API server made the name of what is created.
	Generated bool
	// Finalized tells that the write takes the last finalizer off an object that
	// is being deleted, which ends it.
	Finalized bool
	// DryRun tells that it will not be stored.
	DryRun bool
	// Enforcement is what is done about a denial: unless it denies, the write
	// is admitted whatever is said of it.
	Enforcement guard.Enforcement
}

// Precondition is the uid of the object that is written, and the resourceVersion that
// it has before the write: "" where it is created.
type Precondition struct {
	UID     types.UID
	Version string
}

// lasting reports whether the write changes what others are judged by.
func (w Write) persistent() bool {
	if w.DryRun || w.Finalized {
		return !w.DryRun
	}
	switch was := w.Change.Before.(type) {
	case *policykind.Policy:
		is, ok := w.Change.After.(*policykind.Policy)
		return !ok || !was.Same(is)
	case *gateway.Route:
		is, ok := w.Change.After.(*gateway.Route)
		return !ok || !was.Same(is)
	default:
		return !reflect.DeepEqual(w.Change.Before, w.Change.After)
	}
}

// objects returns what is written, as it was and as it will be.
func (w Write) objects() []snapshot.Object { return []snapshot.Object{w.Change.Before, w.Change.After} }

// removes reports whether the object is gone once the write is stored, or waits
// for its finalizers.
func (w Write) removes() bool { return w.Change.After == nil || w.Finalized }

// changes returns what the write does to a view that holds objects of its kind.
func (w Write) changes() []snapshot.Change {
	if w.removes() {
		return []snapshot.Change{snapshot.Delete(w.Change.Object().Ref())}
	}
	return []snapshot.Change{snapshot.Put(w.Change.After)}
}

// footprint returns where the write may meet others.
func (w Write) footprint(views ...*snapshot.View) *effective.Footprint {
	if n, ok := w.Change.Before.(*gateway.Namespace); ok && n != nil && w.Change.After == nil {
		return effective.Everywhere() // all that is in it goes, too
	}
	return effective.FootprintOf(w.objects(), views...)
}

// errReread tells that the policies of a kind are read in another way than
// those of a write were, since a moment ago.
var errKindChanged = errors.New("policies of this kind are read in another way since a moment ago")

// fits reports whether a view reads policies as the write was read: one of a
// kind that it does not hold at all takes no part there.
func sameReading(o snapshot.Object, v *snapshot.View) error {
	p, ok := o.(*policykind.Policy)
	if !ok || p == nil {
		return nil
	}
	if k := v.Kind(p.Kind.Ref()); k != nil && k != p.Kind {
		return fmt.Errorf("%s: %w", p.Ref(), errKindChanged)
	}
	return nil
}

// judgedBy reports whether a view can judge the write: it has the kind of a policy
// as the write was read by. Without it, it would find nothing wrong.
func (w Write) checkKind(v *snapshot.View) error {
	if p, ok := w.Change.Object().(*policykind.Policy); ok && p != nil && v.Kind(p.Kind.Ref()) != p.Kind {
		return fmt.Errorf("%s: %w", p.Ref(), errKindChanged)
	}
	return nil
}

// layer is a view with writes laid over it. Those that only put or take out an
// object are gathered: making a view of each would cost more than judging.
type overlay struct {
	guard   *guard.Guard
	view    *snapshot.View
	pending []snapshot.Change
	present map[api.Ref]bool // after what is pending
}

// flat returns the view with all that is pending.
func (l *overlay) flush() *snapshot.View {
	if len(l.pending) > 0 {
		l.view = l.view.With(l.pending...)
		l.pending, l.present = nil, nil
	}
	return l.view
}

func (l *overlay) exists(ref api.Ref) bool {
	if there, ok := l.present[ref]; ok {
		return there
	}
	return l.view.Get(ref) != nil
}

func (l *overlay) put(changes ...snapshot.Change) {
	if l.present == nil {
		l.present = make(map[api.Ref]bool)
	}
	for _, c := range changes {
		l.present[c.Ref] = c.Object != nil
	}
	l.pending = append(l.pending, changes...)
}

// lay lays a write over the view, as if it were stored.
func (l *overlay) apply(ctx context.Context, w Write) error {
	switch o := w.Change.Object().(type) {
	case *policykind.Profile, *policykind.Definition:
		return l.applyKind(ctx, w)
	case *policykind.Policy:
		if err := sameReading(o, l.view); err != nil || l.view.Kind(o.Kind.Ref()) == nil {
			return err
		}
	}
	ref := w.Change.Object().Ref()
	switch {
	case w.removes():
		if n, ok := w.Change.Before.(*gateway.Namespace); ok {
			l.put(l.flush().AllIn(n.Name)...)
		}
		l.put(snapshot.Delete(ref))
	case w.Change.Operation == guard.Create && l.exists(ref):
		// The API server refuses to create what there is.
	default:
		l.put(snapshot.Put(w.Change.After))
	}
	return nil
}

// reread lays over what says how policies are read.
func (l *overlay) applyKind(ctx context.Context, w Write) error {
	if l.guard.Kinds == nil {
		return nil
	}
	is := snapshot.Reading{Before: w.Change.Before, After: w.Change.After}
	if w.removes() {
		is.After = nil
	}
	v, err := l.guard.Kinds.Reread(ctx, l.flush(), is.Before, is.After)
	if _, second := errors.AsType[*policykind.DefinedError](err); second {
		return nil // it was let through by an enforcement that denies nothing, and is not read
	}
	if err != nil {
		return fmt.Errorf("find out what %s does to the policies: %w", w.Change.Object().Ref(), err)
	}
	l.view = v.WithReading(is) // the next one is read on top of it, even if this one changes nothing
	return nil
}

// flown is a write that was admitted and not seen yet.
type pendingWrite struct {
	Write
	ref api.Ref
	Precondition
	user  string
	owner owner
	cost  usage
}

// overhead is about what an entry takes besides its object and the names in its
// footprint.
const entryOverhead = 1 << 10

// flown is the write as an entry of the log has it.
func (w Write) pending(ref api.Ref) pendingWrite {
	f := pendingWrite{Write: w, ref: ref, Precondition: w.Precondition(), cost: usage{1, entryOverhead + w.Size}}
	if u := w.Change.User; u != nil {
		f.user = u.Username
	}
	f.Change.User = nil // it is not needed again
	if p, ok := w.Change.After.(*policykind.Policy); ok && p != nil {
		f.Change.After = p.Pack()
	}
	return f
}

// noNamespace is where writes are counted of namespaces that the view does not
// hold: all of them have one share, as a review that is forged may name any.
const noNamespace = "?"

func (f pendingWrite) ownerIn(v *snapshot.View) owner {
	namespace := f.ref.Namespace
	if namespace != "" && v.Get((&gateway.Namespace{Name: namespace}).Ref()) == nil {
		namespace = noNamespace
	}
	return ownerOf(namespace, f.user)
}

// seenBy reports whether what was seen is the write, or came after it. Versions
// of one resource can be compared whichever object they are of.
func (f pendingWrite) observedBy(s snapshot.Observation) bool {
	if f.Change.Operation == guard.Create {
		return f.UID != "" && s.UID == f.UID
	}
	if s.Deleted && (s.UID == "" || s.UID == f.UID) {
		return true
	}
	return s.Version != "" && newer(s.Version, f.Version)
}

// later reports whether a resourceVersion is after another; those that cannot
// be compared are taken to be, if they differ.
func newer(version, than string) bool {
	c, err := resourceversion.CompareResourceVersion(version, than)
	if err != nil {
		return version != than
	}
	return c > 0
}
