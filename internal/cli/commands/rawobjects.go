package commands

import (
	"context"
	"errors"
	"fmt"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/manifest"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
)

// rawObjects are the undecoded objects, from which policies are decoded again
// after their kind has changed.
type rawObjects struct {
	namespace string
	objects   map[api.Ref]rawObject
	// stored are those of the cluster; nil for manifests. listed are the kinds that
	// have been listed.
	stored storedObjects
	listed map[api.PolicyKind]bool
	// deletedNamespaces were deleted with all objects in them.
	deletedNamespaces map[string]bool
}

// rawObject is an undecoded object; a nil object was deleted.
type rawObject struct {
	object  *manifest.Object
	created int64
	// resetCreation replaces the creation time of the object by created, as the API
	// server would.
	resetCreation bool
}

func (c *connection) newRawObjects(s *source) (*rawObjects, error) {
	out := &rawObjects{
		namespace: s.namespace, objects: make(map[api.Ref]rawObject),
		listed: make(map[api.PolicyKind]bool), deletedNamespaces: make(map[string]bool),
	}
	if s.set != nil {
		out.add(s.set, s.kinds)
		return out, nil
	}
	var err error
	out.stored, err = c.storedObjects()
	return out, err
}

// add adds the objects of a set, except those that were changed.
func (s *rawObjects) add(set *manifest.Set, kinds *manifest.Kinds) {
	for _, o := range set.Objects {
		ref := o.Ref(kinds, s.namespace)
		if _, changed := s.objects[ref]; !changed {
			s.objects[ref] = rawObject{object: o, created: merge.Undated}
		}
	}
}

// record stores the object of a change that took effect.
func (s *rawObjects) record(ref api.Ref, o *manifest.Object, created int64, removed bool) {
	if removed {
		o = nil
	}
	s.objects[ref] = rawObject{object: o, created: created, resetCreation: true}
}

// policies decodes the policies of a kind.
func (s *rawObjects) policies(ctx context.Context, kinds *manifest.Kinds, k *policykind.Kind) ([]snapshot.Change, error) {
	if err := s.fetch(ctx, kinds, k.Ref()); err != nil {
		return nil, err
	}
	var out []snapshot.Change
	var errs []error
	for ref, raw := range s.objects {
		if ref.PolicyKind() != k.Ref() || raw.object == nil || s.deletedNamespaces[ref.Namespace] {
			continue
		}
		o, err := raw.object.Coerced(k).Decode(kinds, s.namespace, raw.created, raw.resetCreation)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(out, snapshot.Put(o))
	}
	return out, errors.Join(errs...)
}

// get returns an undecoded object, nil if it does not exist.
func (s *rawObjects) get(ctx context.Context, ref api.Ref) (*manifest.Object, error) {
	raw, known := s.objects[ref]
	if known || s.stored == nil || s.listed[ref.PolicyKind()] {
		return raw.object, nil
	}
	content, err := s.stored.get(ctx, ref)
	if isAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	set, err := manifest.FromObjects("the cluster", []map[string]any{content})
	if err != nil {
		return nil, err
	}
	return set.Objects[0], nil
}

// fetch lists the objects of a kind on the cluster.
func (s *rawObjects) fetch(ctx context.Context, kinds *manifest.Kinds, ref api.PolicyKind) error {
	if s.stored == nil || s.listed[ref] {
		return nil
	}
	objects, err := s.stored.list(ctx, ref, "")
	if err != nil {
		return fmt.Errorf("list objects of kind %s: %w", ref, err)
	}
	set, err := manifest.FromObjects("the cluster", objects)
	if err != nil {
		return err
	}
	s.add(set, kinds)
	s.listed[ref] = true
	return nil
}
