package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
	"overrule.dev/overrule/test/server"
)

// state is what is stored at one moment of a history, and the snapshot of it.
type state struct {
	objects map[api.Ref]*Object
	// live counts the objects that are not being deleted, by uid.
	live  map[types.UID]bool
	kinds kinds
	store *snapshot.Store
}

// newState returns the state with these objects.
func newState(objects []*Object) (*state, error) {
	k, err := newKinds()
	if err != nil {
		return nil, err
	}
	s := &state{objects: make(map[api.Ref]*Object), live: make(map[types.UID]bool), kinds: k, store: snapshot.New()}
	next := k.clone()
	for _, o := range objects {
		s.put(o)
		if !affects(refOf(o).PolicyKind()) {
			continue
		}
		decoded, err := s.decode(o)
		if err != nil {
			return nil, err
		}
		if err := next.put(decoded); err != nil {
			return nil, err
		}
	}
	if err := s.setKinds(next); err != nil {
		return nil, err
	}
	for _, o := range objects {
		if err := s.show(refOf(o), o); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *state) put(o *Object) {
	s.objects[refOf(o)] = o
	s.live[o.GetUID()] = o.GetDeletionTimestamp() == nil
}

// apply applies a write.
func (s *state) apply(w Write) error {
	if old := s.objects[w.Ref]; old != nil {
		delete(s.live, old.GetUID())
		delete(s.objects, w.Ref)
	}
	if w.Object != nil {
		s.put(w.Object)
	}
	if !affects(w.Ref.PolicyKind()) {
		return s.show(w.Ref, w.Object)
	}
	next := s.kinds.clone()
	if w.Object == nil {
		if err := next.remove(w.Ref); err != nil {
			return err
		}
		return s.setKinds(next)
	}
	o, err := s.decode(w.Object)
	if err != nil {
		return err
	}
	if err := next.put(o); err != nil {
		return err
	}
	return s.setKinds(next)
}

// show updates the snapshot with an object, nil if it was deleted.
func (s *state) show(ref api.Ref, o *Object) error {
	if affects(ref.PolicyKind()) || s.exempt(ref) {
		return nil
	}
	if o == nil {
		s.store.Apply(snapshot.Delete(ref))
		return nil
	}
	decoded, err := s.decode(o)
	switch {
	case errors.Is(err, snapshot.ErrKind):
		return nil
	case err != nil:
		return err
	}
	s.store.Apply(snapshot.Put(decoded))
	return nil
}

// exempt reports whether an object is a policy of the server's namespace, which do not
// count.
func (s *state) exempt(ref api.Ref) bool {
	return ref.Namespace == server.Namespace && s.kinds.policies[ref.PolicyKind()] != nil
}

// setKinds makes these the kinds by which policies are read, and reads those again that
// are read differently.
func (s *state) setKinds(next kinds) error {
	if err := next.resolve(); err != nil {
		return err
	}
	earlier := s.kinds
	s.kinds = next
	for ref := range earlier.policies {
		if next.policies[ref] == nil {
			s.store.RemoveKind(ref)
		}
	}
	for _, kind := range next.changed(earlier) {
		policies, err := s.policies(kind)
		if err != nil {
			return err
		}
		s.store.AddKind(kind)
		s.store.KindListed(kind.Ref(), policies...)
	}
	for _, kind := range next.dropped(earlier) {
		s.store.Replace(kind, nil)
	}
	return nil
}

// policies returns the policies of a kind, as they are read by it.
func (s *state) policies(kind *policykind.Kind) ([]snapshot.Object, error) {
	var out []snapshot.Object
	for ref, o := range s.objects {
		if ref.PolicyKind() != kind.Ref() || ref.Namespace == server.Namespace {
			continue
		}
		p, err := decodePolicy(kind, o)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

// decode decodes an object as the server does. The error is snapshot.ErrKind for a kind
// that is not read.
func (s *state) decode(o *Object) (snapshot.Object, error) {
	ref := refOf(o)
	if kind := s.kinds.policies[ref.PolicyKind()]; kind != nil {
		return decodePolicy(kind, o)
	}
	data, err := json.Marshal(o.Object)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", ref, err)
	}
	return snapshot.Decode(ref.PolicyKind(), nil, data, merge.Newest)
}

func decodePolicy(kind *policykind.Kind, o *Object) (snapshot.Object, error) {
	content := served(kind, o)
	return kind.Read(content, merge.Newest).Pack(), nil
}

// served returns a policy as the API server serves it: with the schema of its kind, which
// may have changed since it was stored.
func served(kind *policykind.Kind, o *Object) map[string]any {
	content := runtime.DeepCopyJSON(o.Object)
	kind.Schema().Coerce(content, nil)
	return content
}

// Profiles implements guard.KindReader.
func (s *state) Profiles() []api.ProfileInForce {
	var out []api.ProfileInForce
	for _, k := range s.kinds.profiles.Known() {
		out = append(out, s.kinds.profiles.InForce(k, s.kinds.policies[k.Ref()] != nil))
	}
	return out
}

// Schema implements guard.KindReader.
func (s *state) Schema(_ context.Context, kind api.PolicyKind) (*apiextensionsv1.JSONSchemaProps, error) {
	for _, d := range s.kinds.definitions {
		if d.kind != kind || !d.served {
			continue
		}
		for _, v := range d.crd.Spec.Versions {
			if v.Storage && v.Schema != nil {
				return v.Schema.OpenAPIV3Schema, nil
			}
		}
	}
	return nil, nil
}

// ViewAfterKindChange implements guard.KindReader.
func (s *state) ViewAfterKindChange(v *snapshot.View, before, after snapshot.Object) (*snapshot.View, error) {
	written := after
	if written == nil {
		written = before
	}
	current := s.kinds.clone()
	current.profiles.RemoveDeleting(written.Ref().Name)
	if err := current.resolve(); err != nil {
		return nil, err
	}
	next := current.clone()
	var err error
	if after == nil {
		err = next.remove(before.Ref())
	} else {
		err = next.put(after)
	}
	if err := errors.Join(err, next.resolve()); err != nil {
		return nil, err
	}
	return s.viewWith(v, next, current)
}

// viewWith returns a view with other kinds.
func (s *state) viewWith(v *snapshot.View, next, earlier kinds) (*snapshot.View, error) {
	var changes []snapshot.Change
	for _, kind := range next.changed(s.kinds) {
		policies, err := s.policies(kind)
		if err != nil {
			return nil, err
		}
		for _, p := range policies {
			changes = append(changes, snapshot.Put(p))
		}
	}
	for _, kind := range next.dropped(earlier) {
		for o := range v.Objects(kind) {
			changes = append(changes, snapshot.Delete(o.Ref()))
		}
	}
	if len(changes) == 0 && maps.Equal(next.policies, s.kinds.policies) {
		return v, nil
	}
	return v.WithKinds(slices.Collect(maps.Values(next.policies))).With(changes...), nil
}
