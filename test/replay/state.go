package replay

import (
	"encoding/json"
	"errors"
	"fmt"

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
	kinds *snapshot.Kinds
	store *snapshot.Store
}

// newState returns the state with these objects.
func newState(objects []*Object) (*state, error) {
	s := &state{objects: make(map[api.Ref]*Object), live: make(map[types.UID]bool), kinds: snapshot.NewKinds(), store: snapshot.New()}
	var defining []snapshot.Change
	for _, o := range objects {
		s.put(o)
		if !affects(refOf(o).PolicyKind()) {
			continue
		}
		decoded, err := s.decode(o)
		if err != nil {
			return nil, err
		}
		defining = append(defining, snapshot.Put(decoded))
	}
	if err := s.setKinds(s.kinds.With(defining...)); err != nil {
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
	if w.Object == nil {
		return s.setKinds(s.kinds.With(snapshot.Delete(w.Ref)))
	}
	o, err := s.decode(w.Object)
	if err != nil {
		return err
	}
	return s.setKinds(s.kinds.With(snapshot.Put(o)))
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
	return ref.Namespace == server.Namespace && s.kinds.Of(ref.PolicyKind()) != nil
}

// setKinds makes these the kinds by which policies are read, and reads those again that
// are read differently.
func (s *state) setKinds(next *snapshot.Kinds) error {
	earlier := s.kinds
	s.kinds = next
	s.store.SetKinds(next)
	for _, kind := range earlier.All() {
		if next.Of(kind.Ref()) == nil {
			s.store.RemoveKind(kind.Ref())
		}
	}
	for _, kind := range next.All() {
		if earlier.Of(kind.Ref()) == kind {
			continue
		}
		policies, err := s.policies(kind)
		if err != nil {
			return err
		}
		s.store.AddKind(kind)
		s.store.KindListed(kind.Ref(), policies...)
	}
	for _, d := range earlier.Definitions() {
		if now := next.DefinitionNamed(d.Name); d.Fixed && d.Served() && (now == nil || !now.Served()) {
			s.store.Replace(d.Kind, nil)
		}
	}
	return nil
}

// affects reports whether objects of a kind determine how policies are read.
func affects(kind api.PolicyKind) bool {
	return kind == policykind.KindProfile || kind == policykind.KindDefinition
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
	if kind := s.kinds.Of(ref.PolicyKind()); kind != nil {
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
	kind.Schema().Coerce(content)
	return content
}
