package effective

import (
	"iter"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// Parts yields scopes that have all paths of a view together, each once: those
// of a gateway each, then those of a namespace's services, then what exists
// nowhere as objects. Whoever walks them one by one can rest in between.
func Parts(v *snapshot.View) iter.Seq[Scope] {
	return func(yield func(Scope) bool) {
		for g := range v.Gateways() {
			if !yield(Scope{Roots: []api.Ref{g.Ref()}}) {
				return
			}
		}
		var services Scope
		for o := range v.Objects(api.PolicyKind{Kind: gateway.KindService}) {
			ref := o.Ref()
			if n := len(services.Roots); n > 0 && services.Roots[n-1].Namespace != ref.Namespace {
				if !yield(services) {
					return
				}
				services.Roots = nil
			}
			services.Roots = append(services.Roots, ref)
		}
		if len(services.Roots) > 0 && !yield(services) {
			return
		}
		if virtual := virtualTargets(v); len(virtual) > 0 {
			yield(Scope{Virtual: virtual})
		}
	}
}
