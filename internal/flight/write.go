package flight

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/hierarchy"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/store"
)

// Write is a write to be judged.
type Write struct {
	Change guard.Change
	// Stamp tells by what the write will be known when it is seen. It is asked
	// only if the write is admitted.
	Stamp func() Stamp
	// DryRun tells that it will not be stored.
	DryRun bool
	// Enforcement is what is done about a denial: unless it denies, the write
	// is admitted whatever is said of it.
	Enforcement guard.Enforcement
}

// Stamp is the uid of the object that is written, and the resourceVersion that
// it has before the write: "" where it is created.
type Stamp struct {
	UID     types.UID
	Version string
}

// lasting reports whether the write changes what others are judged by.
func (w Write) lasting() bool {
	if w.DryRun {
		return false
	}
	switch was := w.Change.Before.(type) {
	case *policykind.Policy:
		is, ok := w.Change.After.(*policykind.Policy)
		return !ok || !was.Same(is)
	case *hierarchy.Route:
		is, ok := w.Change.After.(*hierarchy.Route)
		return !ok || !was.Same(is)
	default:
		return !reflect.DeepEqual(w.Change.Before, w.Change.After)
	}
}

// objects returns what is written, as it was and as it will be.
func (w Write) objects() []store.Object { return []store.Object{w.Change.Before, w.Change.After} }

// footprint returns where the write may meet others.
func (w Write) footprint(views ...*store.View) *effective.Footprint {
	if n, ok := w.Change.Before.(*hierarchy.Namespace); ok && n != nil && w.Change.After == nil {
		return effective.Everywhere() // all that is in it goes, too
	}
	return effective.FootprintOf(w.objects(), views...)
}

// errReread tells that the policies of a kind are read in another way than
// those of a write were, since a moment ago.
var errReread = errors.New("policies of this kind are read in another way since a moment ago")

// fits reports whether a view reads policies as the write was read: one of a
// kind that it does not hold at all takes no part there.
func fits(o store.Object, v *store.View) error {
	p, ok := o.(*policykind.Policy)
	if !ok || p == nil {
		return nil
	}
	if k := v.Kind(p.Kind.Ref()); k != nil && k != p.Kind {
		return fmt.Errorf("%s: %w", p.Ref(), errReread)
	}
	return nil
}

// over returns the view as it would be if the write were stored.
func (w Write) over(ctx context.Context, g *guard.Guard, v *store.View) (*store.View, error) {
	ref := w.Change.Object().Ref()
	switch o := w.Change.Object().(type) {
	case *policykind.Profile, *policykind.Definition:
		if g.Kinds == nil {
			return v, nil
		}
		after, err := g.Kinds.Reread(ctx, v, w.Change.Before, w.Change.After)
		if err != nil {
			return nil, fmt.Errorf("find out what %s does to the policies: %w", ref, err)
		}
		return after, nil
	case *policykind.Policy:
		if err := fits(o, v); err != nil || v.Kind(o.Kind.Ref()) == nil {
			return v, err
		}
	}
	return w.put(v), nil
}

// put puts what is written into a view.
func (w Write) put(v *store.View) *store.View {
	ref := w.Change.Object().Ref()
	switch {
	case w.Change.After == nil:
		changes := []store.Change{store.Delete(ref)}
		if n, ok := w.Change.Before.(*hierarchy.Namespace); ok {
			changes = append(v.AllIn(n.Name), changes...)
		}
		return v.With(changes...)
	case w.Change.Operation == guard.Create && v.Get(ref) != nil:
		return v // the API server refuses to create what there is
	default:
		return v.With(store.Put(w.Change.After))
	}
}

// flown is a write that was admitted and not seen yet.
type flown struct {
	Write
	ref api.Ref
	Stamp
}

// seenBy reports whether what was seen is the write, or came after it. Versions
// of one resource can be compared whichever object they are of.
func (f flown) seenBy(s store.Seen) bool {
	if f.Change.Operation == guard.Create {
		return f.UID != "" && s.UID == f.UID
	}
	if s.Deleted && (s.UID == "" || s.UID == f.UID) {
		return true
	}
	return s.Version != "" && later(s.Version, f.Version)
}

// later reports whether a resourceVersion is after another; those that cannot
// be compared are taken to be, if they differ.
func later(version, than string) bool {
	c, err := resourceversion.CompareResourceVersion(version, than)
	if err != nil {
		return version != than
	}
	return c > 0
}
