package snapshot

import (
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/labels"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/gateway"
)

var _ constraint.Lookup = (*View)(nil)

// Constraints returns the valid constraints on a kind, sorted by their
// references. The list is shared: do not edit.
func (v *View) Constraints(kind api.PolicyKind) []*constraint.Constraint { return v.constraints[kind] }

// Constrained returns the kinds that have a valid constraint, sorted.
func (v *View) Constrained() []api.PolicyKind {
	return slices.SortedFunc(maps.Keys(v.constraints), api.ComparePolicyKinds)
}

// replaceConstraint replaces a constraint among those in force by another one, unless that is
// invalid. Other objects, and nil, are none.
func (v *View) replaceConstraint(old, next Object) {
	if c, ok := old.(*constraint.Constraint); ok {
		if i := slices.Index(v.constraints[c.PolicyKind()], c); i >= 0 {
			v.setConstraints(c.PolicyKind(), slices.Delete(slices.Clone(v.constraints[c.PolicyKind()]), i, i+1))
		}
	}
	if c, ok := next.(*constraint.Constraint); ok && c.Invalid == nil {
		list := slices.Clone(v.constraints[c.PolicyKind()])
		i, _ := slices.BinarySearchFunc(list, c, compareConstraints)
		v.setConstraints(c.PolicyKind(), slices.Insert(list, i, c))
	}
}

func (v *View) setConstraints(kind api.PolicyKind, list []*constraint.Constraint) {
	next := maps.Clone(v.constraints) // the old map is shared with other views
	if next == nil {
		next = make(map[api.PolicyKind][]*constraint.Constraint)
	}
	if next[kind] = list; len(list) == 0 {
		delete(next, kind)
	}
	v.constraints = next
}

func compareConstraints(a, b *constraint.Constraint) int { return api.CompareRefs(a.Ref(), b.Ref()) }

// LabelsOf returns the labels of an object, nil if it does not exist.
func (v *View) LabelsOf(ref api.Ref) labels.Set { return gateway.LabelsOf(v.Get(ref)) }

// PortOf returns the number of a Service's port by its name, 0 if there is
// none.
func (v *View) PortOf(service api.Ref, name string) int32 {
	if s, ok := v.Get(service).(*gateway.Service); ok {
		return s.Port(name)
	}
	return 0
}

// Absent returns the targets of a constraint, selected by name, that do not exist. all is
// set if it has no other targets: it then applies to no path.
func (v *View) Absent(c *constraint.Constraint) (absent []constraint.Named, all bool) {
	names, onlyNames := c.Named()
	for _, n := range names {
		if !v.exists(n) {
			absent = append(absent, n)
		}
	}
	return absent, onlyNames && len(absent) > 0 && len(absent) == len(names)
}

func (v *View) exists(n constraint.Named) bool {
	kind := n.Ref.PolicyKind()
	if n.Ref.Namespace != "" || gateway.ClusterScoped(kind) {
		return HasSection(v.Get(n.Ref), n.Section)
	}
	for o := range v.Objects(kind) {
		if o.Ref().Name == n.Ref.Name && HasSection(o, n.Section) {
			return true
		}
	}
	return false
}

// HasSection reports whether an object exists and has a section, if one is named.
func HasSection(o Object, section string) bool {
	if o == nil || section == "" {
		return o != nil
	}
	switch o := o.(type) {
	case *gateway.Gateway:
		return gateway.HasListener(o.Listeners, section, 0)
	case *gateway.ListenerSet:
		return gateway.HasListener(o.Listeners, section, 0)
	case *gateway.Route:
		return o.HasSection(section)
	case *gateway.Service:
		number, err := strconv.ParseInt(section, 10, 32)
		return err == nil && o.HasPort(int32(number)) || o.Port(section) != 0
	default:
		return false
	}
}
