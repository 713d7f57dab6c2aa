package snapshot

import (
	"reflect"

	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
)

// Same reports whether two states of an object are equal in everything that effective
// policies depend on. They are if only marks or the status changed.
func Same(a, b Object) bool {
	switch a := a.(type) {
	case *gateway.Route:
		o, ok := b.(*gateway.Route)
		return ok && a.Same(o)
	case *policykind.Policy:
		o, ok := b.(*policykind.Policy)
		return ok && a.Same(o)
	case *constraint.Constraint:
		o, ok := b.(*constraint.Constraint)
		return ok && a.Same(o)
	default:
		return reflect.DeepEqual(a, b)
	}
}
