package constraint

import (
	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
)

// Named is an object that a constraint names as a target.
type Named struct {
	// Ref of the object; without a namespace where its kind has one, it may be
	// in any.
	Ref api.Ref
	// Section of the object, empty for the whole.
	Section string
}

// String names the object, and its section if there is one.
func (n Named) String() string {
	if n.Section == "" {
		return n.Ref.String()
	}
	return "section " + n.Section + " of " + n.Ref.String()
}

// Named returns the targets that are chosen by name, in the order of the
// constraint, and whether there are no others. Left out are namespaces, and
// objects of kinds that are not read: whether those exist cannot be decided.
func (c *Constraint) Named() (names []Named, all bool) {
	for _, t := range c.targets {
		if t.name == "" || t.of == kindNamespace || !gateway.Known(t.of) {
			continue
		}
		names = append(names, Named{
			Ref:     api.Ref{Group: t.of.Group, Kind: t.of.Kind, Namespace: t.namespace, Name: t.name},
			Section: t.section,
		})
	}
	return names, len(names) == len(c.targets)
}
