package snapshot

import (
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
)

// KindConfig returns the definitions and profiles by which the objects of the view are read, or
// will be once they are listed.
func (v *View) KindConfig() *Kinds {
	if v.config == nil {
		return KindsOf(slices.Concat(v.kinds, v.unlisted)...)
	}
	return v.config
}

// Selectable is Kinds.Selectable for the definitions and profiles of the view.
func (v *View) Selectable(kind api.PolicyKind) bool {
	return v.config != nil && v.config.Selectable(kind)
}

// WithKindConfig returns the view with other definitions and profiles. Its objects, and the kinds
// that it lists, stay as they are.
func (v *View) WithKindConfig(k *Kinds) *View {
	next := *v
	next.config = k
	return &next
}

// SetKinds sets the definitions and profiles, by which AddKind and KindListed follow.
func (s *Store) SetKinds(k *Kinds) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.publish(s.view.Load().WithKindConfig(k))
}

// WithKindChange returns the view as it would be after a *policykind.Profile or a
// *policykind.Definition is written: before is nil on a create, after on a delete. A kind whose
// policies are read in another way is then not listed: what they are is not known before the
// API server serves them. The error is a *policykind.DefinedError for a second definition of a
// kind.
//
// A profile that is terminating, or will be deleted with its owner, does not replace another
// one, before or after the write: its final deletion is not evaluated. This does not apply to
// the profile that is written.
func (v *View) WithKindChange(before, after Object) (*View, error) {
	was, written := v.KindConfig(), after
	if d, ok := before.(*policykind.Definition); before != nil && (!ok || !d.StandIn) {
		was = was.With(Put(before)) // the write is newer than the view
	}
	if err := was.checkDuplicate(before, after); err != nil {
		return nil, err
	}
	var change Change
	if after != nil {
		change = Put(after)
	} else {
		change, written = Delete(before.Ref()), before
	}
	was = was.withoutDeleting(written.Ref().Name)
	is := was.With(change)
	return v.WithKindConfig(is).reread(was, is), nil
}

// reread returns the view with the kinds that are read differently as ones that are not listed,
// and without the objects of other kinds that are not served any more.
func (v *View) reread(was, is *Kinds) *View {
	stays := func(k *policykind.Kind) bool { return was.readsLike(is, k.Ref()) }
	listed, unlisted := filter(v.kinds, stays), filter(v.unlisted, stays)
	changed := len(listed) < len(v.kinds) || len(unlisted) < len(v.unlisted)
	for ref, k := range is.policies {
		if !was.readsLike(is, ref) {
			unlisted, changed = append(unlisted, k), true
		}
	}
	var dropped []Change
	for _, d := range was.definitions {
		if now := is.definitions[d.Name]; d.Fixed && d.Served() && (now == nil || !now.Served()) {
			for o := range v.Objects(d.Kind) {
				dropped = append(dropped, Delete(o.Ref()))
			}
		}
	}
	if !changed && len(dropped) == 0 {
		return v
	}
	return v.WithKinds(listed).WithUnlisted(unlisted).With(dropped...)
}

func filter(kinds []*policykind.Kind, keep func(*policykind.Kind) bool) []*policykind.Kind {
	return slices.DeleteFunc(slices.Clone(kinds), func(k *policykind.Kind) bool { return !keep(k) })
}

// readsLike reports whether the same policies are read in the same way by other kinds.
func (k *Kinds) readsLike(o *Kinds, kind api.PolicyKind) bool {
	a, b := k.policies[kind], o.policies[kind]
	if a == nil || b == nil {
		return a == b
	}
	x, y := k.active[kind], o.active[kind]
	sameDefinition := x == nil || y == nil || x.Name == "" || x.Name == y.Name // those of manifests are rarely known
	return sameDefinition && (a == b || a.ReadsLike(b))
}

// withoutDeleting returns the kinds without the PolicyProfiles that are being deleted, or will be
// with an owner, except the named one.
func (k *Kinds) withoutDeleting(except string) *Kinds {
	var deleting []Change
	for name, p := range k.profiles {
		if name != except && (p.DeletionTimestamp != nil || len(p.OwnerReferences) > 0) {
			deleting = append(deleting, Delete(p.Ref()))
		}
	}
	if len(deleting) == 0 {
		return k
	}
	return k.With(deleting...)
}

// checkDuplicate returns an error if the written definition would be a second one of a kind that
// is read. An existing duplicate may be edited, but not become served.
func (k *Kinds) checkDuplicate(before, after Object) error {
	written, ok := after.(*policykind.Definition)
	if !ok {
		return nil
	}
	kind := written.Defines()
	if old, ok := before.(*policykind.Definition); ok && old.Defines() == kind &&
		(established(&old.CustomResourceDefinition) || !established(&written.CustomResourceDefinition)) {
		return nil
	}
	d := &Definition{Name: written.Name, Kind: kind}
	if err := d.checkReserved(); err != nil {
		return err
	}
	if first := k.active[kind]; k.policies[kind] != nil && first != nil && first.Name != "" && first.Name != d.Name {
		return &policykind.DefinedError{Kind: kind, By: first.Name}
	}
	return nil
}
