package inflight

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// overlay is a view with writes applied to it. Writes that only put or delete an object
// are collected: a view for each would cost more than the evaluation.
type overlay struct {
	view      *snapshot.View
	collected map[api.Ref]snapshot.Change
}

// overlayOf returns a view with entries applied to it, in their order.
func overlayOf(v *snapshot.View, entries []*entry) (*snapshot.View, error) {
	o := overlay{view: v}
	for _, e := range entries {
		if err := o.apply(e.write); err != nil {
			return nil, err
		}
	}
	return o.flush(), nil
}

// apply applies a write as if it were stored.
func (o *overlay) apply(w Write) error {
	switch object := w.Change.Object().(type) {
	case *policykind.Profile, *policykind.Definition:
		return o.applyKind(w)
	case *policykind.Policy:
		if o.view.Kind(object.Kind.Ref()) == nil {
			return nil // it takes no part
		}
		if err := w.checkKind(o.view); err != nil {
			return err
		}
	}
	ref := w.Change.Object().Ref()
	switch {
	case w.removes():
		if n, ok := w.Change.Before.(*gateway.Namespace); ok {
			o.put(o.flush().AllIn(n.Name)...)
		}
		o.put(snapshot.Delete(ref))
	case w.Change.Operation == guard.Create && o.exists(ref):
		// The API server rejects the creation of an existing object.
	default:
		o.put(snapshot.Put(w.Change.After))
	}
	return nil
}

// applyKind applies a write of an object that changes how policies are decoded: their kinds
// count as not listed until the API server serves them so.
func (o *overlay) applyKind(w Write) error {
	after := w.Change.After
	if w.removes() {
		after = nil
	}
	v, err := o.flush().WithKindChange(w.Change.Before, after)
	if _, second := errors.AsType[*policykind.DefinedError](err); second {
		return nil // admitted by an enforcement that does not deny, and not used
	}
	if err != nil {
		return fmt.Errorf("evaluate the effect of %s on policies: %w", w.Change.Object().Ref(), err)
	}
	o.view = v
	return nil
}

func (o *overlay) put(changes ...snapshot.Change) {
	if o.collected == nil {
		o.collected = make(map[api.Ref]snapshot.Change)
	}
	for _, c := range changes {
		o.collected[c.Ref] = c
	}
}

func (o *overlay) exists(ref api.Ref) bool {
	if c, ok := o.collected[ref]; ok {
		return c.Object != nil
	}
	return o.view.Get(ref) != nil
}

// flush applies the collected changes and returns the view.
func (o *overlay) flush() *snapshot.View {
	if len(o.collected) > 0 {
		o.view = o.view.With(slices.Collect(maps.Values(o.collected))...)
		o.collected = nil
	}
	return o.view
}
