package policykind

import (
	"slices"
	"strings"
	"sync"
)

// otherControllers are the controllers of implementations whose policy kinds have no
// built-in profile.
var otherControllers = []string{
	"haproxy-ingress.github.io/controller",
	"io.cilium/gateway-controller",
	"projectcontour.io/*",
	"stunner.l7mp.io/gateway-operator",
	"traefik.io/gateway-controller",
}

// builtinControllers are the controllers that the built-in profiles name, each once.
var builtinControllers = sync.OnceValue(func() []string {
	var out []string
	for _, k := range builtinKinds() {
		out = append(out, k.Controllers...)
	}
	slices.Sort(out)
	return slices.Compact(out)
})

// PrefersSections reports whether gateways with a controller apply a policy on a section of
// a backend in place of one on all of it.
func (k *Kind) PrefersSections(controller string) bool {
	return !matchesController(k.Targets.EqualSections, controller)
}

// ReadsSections reports whether gateways with a controller read the section of a backend.
func (k *Kind) ReadsSections(controller string) bool {
	return !matchesController(k.Targets.WholeBackends, controller)
}

// NumbersPorts reports whether gateways with a controller take the section of a Service as
// the number of a port if it is one.
func (k *Kind) NumbersPorts(controller string) bool {
	return matchesController(k.Targets.NumberedSections, controller)
}

// TakesNoneOfSeveral reports whether gateways with a controller apply a policy on a backend
// only if it is the only one.
func (k *Kind) TakesNoneOfSeveral(controller string) bool {
	return matchesController(k.Targets.Alone, controller)
}

// NeedsAllBackends reports whether gateways with a controller read a policy on a backend of a
// rule only if all of them have it.
func (k *Kind) NeedsAllBackends(controller string) bool {
	return matchesController(k.Targets.AllBackends, controller)
}

// AnnotationDomain returns the domain of the annotation that attaches policies of the kind,
// with the slash, or "".
func (k *Kind) AnnotationDomain() string {
	return k.Attachment.Annotation[:strings.Index(k.Attachment.Annotation, "/")+1]
}

// ReadBy reports whether gateways whose GatewayClass has a controller, one that
// KnownController reports, read policies of the kind (SEMANTICS section 1).
func (k *Kind) ReadBy(controller string) bool {
	return len(k.Controllers) == 0 || matchesController(k.Controllers, controller)
}

// KnownController reports whether a controller is one of an implementation that is
// known: a built-in profile or the profile of one of the kinds names it, or it is known
// to read none of these kinds.
func KnownController(controller string, kinds []*Kind) bool {
	return matchesController(builtinControllers(), controller) || matchesController(otherControllers, controller) ||
		slices.ContainsFunc(kinds, func(k *Kind) bool { return matchesController(k.Controllers, controller) })
}

func matchesController(patterns []string, controller string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		start, any := strings.CutSuffix(pattern, "*")
		return controller == pattern || any && strings.HasPrefix(controller, start)
	})
}
