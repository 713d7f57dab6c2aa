package manifest

import (
	"errors"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
)

// Check adds the PolicyProfiles and CustomResourceDefinitions of the set to kinds,
// wherever they are in the files, and returns errors for objects that occur twice.
func (s *Set) Check(kinds *Kinds, namespace string) error {
	return s.CheckAccepted(kinds, namespace, func(o *Object) *Object { return o })
}

// CheckAccepted is Check for a set of which some objects may be rejected: a PolicyProfile
// with an error is replaced by what accepted returns for it, or omitted if that is nil.
func (s *Set) CheckAccepted(kinds *Kinds, namespace string, accepted func(*Object) *Object) error {
	errs := s.define(kinds)
	for _, o := range s.Objects {
		if o.Kind != policykind.KindProfile {
			continue
		}
		err := kinds.AddProfile(o, merge.Undated, false)
		if err != nil {
			if o = accepted(o); o == nil {
				continue
			}
			err = kinds.AddProfile(o, merge.Undated, false)
		}
		errs = append(errs, err)
	}
	first := make(map[api.Ref]Position)
	for _, o := range s.Objects {
		if o.Name == "" || !kinds.Reads(o.Kind) && o.Kind != KindCRD {
			continue
		}
		ref := o.Ref(kinds, namespace)
		position, duplicate := first[ref]
		if duplicate {
			errs = append(errs, o.At.errorf("%w: %s is already defined at %s; remove one of the two", ErrDuplicate, ref, position))
			continue
		}
		first[ref] = o.At
	}
	return errors.Join(errs...)
}

// define adds the CustomResourceDefinitions of the set to kinds.
func (s *Set) define(kinds *Kinds) []error {
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
	errs := []error{s.Check(kinds, namespace)}
	var changes []snapshot.Change
	for _, o := range s.Objects {
		object, err := o.Decode(kinds, namespace, merge.Undated, false)
		switch {
		case o.Kind == policykind.KindProfile: // read by Check
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

// Count is the number of objects of a kind.
type Count struct {
	Kind    api.PolicyKind
	Objects int
}

// Ignored returns the number of objects that are not read, by kind.
func (s *Set) Ignored(kinds *Kinds) []Count {
	var out []Count
	for _, o := range s.Objects {
		if kinds.Reads(o.Kind) || o.Kind == KindCRD {
			continue
		}
		i := slices.IndexFunc(out, func(c Count) bool { return c.Kind == o.Kind })
		if i < 0 {
			i, out = len(out), append(out, Count{Kind: o.Kind})
		}
		out[i].Objects++
	}
	slices.SortFunc(out, func(a, b Count) int { return api.ComparePolicyKinds(a.Kind, b.Kind) })
	return out
}
