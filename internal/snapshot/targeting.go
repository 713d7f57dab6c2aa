package snapshot

import (
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
)

// Targeting looks up the policies that target objects. It keeps its position in the
// index, so that lookups in the order of names cost a step each, and not a search. It is
// not safe for concurrent use.
type Targeting struct {
	view *View
	at   cursor[*policykind.Policy]
	from cursor[Object] // the objects that attach policies to themselves
	key  []byte
}

// Targeting returns a Targeting for lookups of many objects.
func (v *View) Targeting() *Targeting {
	return &Targeting{view: v, at: newCursor(v.byTarget.tree), from: newCursor(v.byReference.tree)}
}

// On yields what View.On does.
func (t *Targeting) On(object api.Ref, yield func(*policykind.Policy, policykind.Target) bool) {
	t.key = appendKey(t.key[:0], object.Group, object.Kind, object.Namespace, object.Name)
	for ok := t.at.seek(t.key); ok && strings.HasPrefix(t.at.key(), string(t.key)); ok = t.at.next() {
		p := t.at.value()
		for i := range p.Targets {
			if target := &p.Targets[i]; target.Selector == nil && target.Ref == object && !yield(p, t.view.granted(p, *target)) {
				return
			}
		}
	}
	if t.view.selected(object, yield) {
		t.referring(yield)
	}
}
