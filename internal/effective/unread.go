package effective

import (
	"fmt"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// controllerOf returns the controller of a gateway's class if its implementation is
// known, else "": the gateway then counts as reading all kinds, as any root that is no
// gateway does.
func controllerOf(v *snapshot.View, g *gateway.Gateway) string {
	class, ok := v.Get((&gateway.Class{Name: g.Class}).Ref()).(*gateway.Class)
	if !ok || !policykind.KnownController(class.Controller, v.Kinds()) {
		return ""
	}
	return class.Controller
}

// unread is which policies of a kind have no effect at a root.
type unread struct {
	levels     levels // at which they are attached
	controller string // of the gateway, if it does not read the kind
	noWaypoint string // why the service has no waypoint, if policies on it need one
	foreign    bool   // policies on the waypoint do not count for the service
	equal      bool   // a section of a backend is not preferred to all of it
	whole      bool   // sections of backends are not read
	all        bool   // a policy on a backend counts only if all of the rule have it
	alone      bool   // of several policies on a backend none counts
	numbers    bool   // a section of a Service may be the number of a port
	text       string // of the reason, once it is known
}

// at sets which policies of a kind have no effect at a gateway: all if its controller does
// not read them, those of the mesh and of namespaces if a waypoint does not.
func (u *unread) at(v *snapshot.View, k *policykind.Kind, g *gateway.Gateway, controller string) {
	u.equal, u.whole, u.numbers = !k.PrefersSections(controller), !k.ReadsSections(controller), k.NumbersPorts(controller)
	u.alone = k.TakesNoneOfSeveral(controller)
	u.all = k.NeedsAllBackends(controller) && !hasParameters(v, g, k.Targets.AnyBackendWith)
	switch {
	case controller != "" && !k.ReadBy(controller):
		u.levels, u.controller = allLevels, controller
	case isWaypoint(k, g) && k.Waypoints.TargetedOnly:
		u.levels = levelsOf(gateway.LevelMesh, gateway.LevelGatewayNamespace, gateway.LevelServiceNamespace)
	}
}

// hasParameters reports whether the parametersRef of a gateway or of its class is to an object
// of a kind, "" for none.
func hasParameters(v *snapshot.View, g *gateway.Gateway, kind string) bool {
	class, ok := v.Get((&gateway.Class{Name: g.Class}).Ref()).(*gateway.Class)
	return kind != "" && (g.Parameters.Kind == kind || ok && class.Parameters.Kind == kind)
}

// onService ignores the policies on the waypoint of a service of another namespace, in some
// kinds.
func (u *unread) onService(k *policykind.Kind, waypoint *gateway.Gateway, s *gateway.Service) {
	if k.Waypoints.OwnNamespace && waypoint.Namespace != s.Namespace && u.levels != allLevels {
		u.levels, u.foreign = u.levels|levelsOf(gateway.LevelGateway), true
	}
}

// reason returns why policies have no effect on a path, "" if it has none of them.
func (u *unread) reason(k *stackBuilder, p *gateway.Path) string {
	switch {
	case u.levels != allLevels && len(k.stack.ignored) == 0:
		return ""
	case k.stack.shared != "":
		return k.stack.shared
	case u.controller == "" && missingTrait(k.kind, p) != "":
		return fmt.Sprintf("policies of kind %s have no effect on %s", k.kind.Kind, missingTrait(k.kind, p))
	case u.text != "":
	case u.controller != "":
		u.text = fmt.Sprintf("policies of kind %s are not read on %s: its GatewayClass %s has controller %s",
			k.kind.Kind, p.Gateway.Ref(), p.Gateway.Class, u.controller)
	case u.noWaypoint != "":
		u.text = fmt.Sprintf("policies of kind %s on a Service have no effect without a waypoint: %s", k.kind.Kind, u.noWaypoint)
	case u.foreign:
		u.text = fmt.Sprintf("policies of kind %s on waypoint %s have no effect on Services of other namespaces", k.kind.Kind, p.Gateway.Ref())
	default:
		u.text = fmt.Sprintf("policies of kind %s without a target have no effect at waypoint %s", k.kind.Kind, p.Gateway.Ref())
	}
	return u.text
}

// missingTrait returns the listeners that policies of a kind have no effect on, if that of a
// path is one of them.
func missingTrait(k *policykind.Kind, p *gateway.Path) string {
	if p.Listener == nil {
		return ""
	}
	for _, trait := range k.Targets.Listeners {
		switch {
		case trait == api.ListenerOwn && p.Set != nil:
			return "the listeners of ListenerSets"
		case trait == api.ListenerHostname && p.Listener.Hostname == "":
			return "listeners without a hostname"
		case trait == api.ListenerTLS && !p.Listener.TerminatesTLS():
			return "listeners that do not terminate TLS"
		case trait == api.ListenerTLS && !p.Listener.OwnCertificates:
			return "listeners without certificateRefs, all of their namespace"
		}
	}
	return ""
}

// UnknownController is a GatewayClass of gateways that may or may not read the policies of
// a view: its Controller is not known, or "" if the class does not exist.
type UnknownController struct{ Class, Controller string }

// UnknownControllers returns the classes of gateways whose controllers are not known, each
// once, if the view has policies of a kind that only some controllers read.
func UnknownControllers(v *snapshot.View) []UnknownController {
	if !slices.ContainsFunc(v.Populated(), func(k *policykind.Kind) bool { return len(k.Controllers) > 0 }) {
		return nil
	}
	var out orderedSet[UnknownController]
	for g := range v.Gateways() {
		if controllerOf(v, g) == "" {
			class, _ := v.Get((&gateway.Class{Name: g.Class}).Ref()).(*gateway.Class)
			u := UnknownController{Class: g.Class}
			if class != nil {
				u.Controller = class.Controller
			}
			out.add(u)
		}
	}
	return out.list
}

// Unread collects where a policy has no effect, because it is not read there.
type Unread struct {
	Paths    int
	reasons  orderedSet[string]
	excluded int // of Paths
}

// Add adds a path on which the policy is ignored.
func (u *Unread) Add(e *Effective) {
	u.Paths++
	u.reasons.add(e.Unread)
	if e.Excluded {
		u.excluded++
	}
}

// State returns the state of a policy that has no effect on any path.
func (u *Unread) State() api.State {
	if u.excluded == u.Paths {
		return api.Conflicted
	}
	return api.NoPath
}

// Reasons returns the reason for each gateway or Service, and for those beyond maxUnread
// their number.
func (u *Unread) Reasons() []string {
	if more := len(u.reasons.list) - maxUnread; more > 0 {
		return append(slices.Clip(u.reasons.list[:maxUnread]), fmt.Sprintf("they are not read on %d more gateways or Services", more))
	}
	return u.reasons.list
}
