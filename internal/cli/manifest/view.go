package manifest

import (
	"errors"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
)

// Define adds the CustomResourceDefinitions and the PolicyProfiles of the set to kinds, wherever
// they are in the files. The error joins those of all that are invalid.
func (s *Set) Define(kinds *Kinds) error {
	errs := s.addDefinitions(kinds)
	for _, o := range s.Objects {
		if o.Kind == policykind.KindProfile {
			errs = append(errs, kinds.AddProfile(o, merge.Undated, false))
		}
	}
	return errors.Join(errs...)
}

// Duplicates returns the errors of objects that occur twice.
func (s *Set) Duplicates(kinds *Kinds, namespace string) error {
	var errs []error
	first := make(map[api.Ref]Position)
	for _, o := range s.Objects {
		if o.Name == "" || !kinds.Reads(o.Kind) && o.Kind != KindCRD {
			continue
		}
		ref := o.Ref(kinds, namespace)
		position, duplicate := first[ref]
		if duplicate {
			errs = append(errs, o.At.errorf("duplicate object: %s is already defined at %s; remove one of the two", ref, position))
			continue
		}
		first[ref] = o.At
	}
	return errors.Join(errs...)
}

func (s *Set) addDefinitions(kinds *Kinds) []error {
	var errs []error
	for _, o := range s.Objects {
		if o.Kind != KindCRD {
			continue
		}
		if err := kinds.AddDefinition(o); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// View returns a view of the objects, and adds the kinds of the set to kinds.
// Objects without a creation time were created together, before all others: what exists
// is older than what a write creates. Objects of kinds that are not
// read are omitted; see Ignored.
func (s *Set) View(kinds *Kinds, namespace string) (*snapshot.View, error) {
	errs := []error{s.Define(kinds), s.Duplicates(kinds, namespace)}
	var changes []snapshot.Change
	for _, o := range s.Objects {
		object, err := o.Decode(kinds, namespace, merge.Undated, false)
		switch {
		case o.Kind == policykind.KindProfile: // read by Define
		case err == nil:
			changes = append(changes, snapshot.Put(object))
		case !errors.Is(err, snapshot.ErrKind):
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return (&snapshot.View{}).WithKindConfig(kinds.Kinds).WithKinds(kinds.All()).With(changes...), nil
}

// Ignored returns the number of objects that are not read, by kind.
func (s *Set) Ignored(kinds *Kinds) map[api.PolicyKind]int {
	out := make(map[api.PolicyKind]int)
	for _, o := range s.Objects {
		if !kinds.Reads(o.Kind) && o.Kind != KindCRD {
			out[o.Kind]++
		}
	}
	return out
}
