package effective

import (
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// noPathReason finds the reason why a target is on no path of a kind.
type noPathReason struct {
	view *snapshot.View

	kind   *policykind.Kind
	shape  *shape
	target policykind.Target
	// consumer is set if only paths of clients in the policy's namespace count.
	consumer bool
}

// route returns why no path goes through a route, or through the rules of it that a
// target selects.
func (reason *noPathReason) route(r *gateway.Route, at policykind.Target) string {
	if why := reason.unattachedRoute(r); why != "" {
		if IsDelegated(reason.view, r) {
			return fmt.Sprintf("the paths of %s are unknown: another route delegates to it, which is not read", r.Ref())
		}
		return reason.notAttached(r.Ref(), why)
	}
	return reason.missingParts(r, at)
}

// IsDelegated reports whether a route takes requests from another one, of which it is a
// backend or which it names as a parent. Paths through such routes are not read.
func IsDelegated(v *snapshot.View, r *gateway.Route) bool {
	if slices.ContainsFunc(r.Unread, func(p api.Ref) bool { return gateway.IsRoute(p.PolicyKind()) }) {
		return true
	}
	all := r.Ref()
	all.Name = "*" // some implementations delegate to all routes of a namespace
	for _, backend := range []api.Ref{r.Ref(), all} {
		for range v.RoutesTo(backend) {
			return true
		}
	}
	return false
}

func (reason *noPathReason) notAttached(object api.Ref, why string) string {
	return fmt.Sprintf("%s is not attached to any %s: %s", object, reason.rootKinds(), why)
}

// rootKinds names the kinds of objects at which the kind's paths start.
func (reason *noPathReason) rootKinds() string {
	switch {
	case !reason.shape.mesh:
		return gateway.KindGateway
	case !reason.shape.gateway:
		return gateway.KindService
	default:
		return gateway.KindGateway + " or " + gateway.KindService
	}
}

// ofAnyKind finds reasons whatever the policy kind.
func ofAnyKind(v *snapshot.View) *noPathReason {
	return &noPathReason{view: v, shape: &shape{gateway: true, mesh: true}}
}

// Unattached returns why no path goes through a route or listener set, whatever the policy
// kind: no parent accepts it. It is empty if one does, and for other objects.
func Unattached(v *snapshot.View, object api.Ref) string {
	reason, why := ofAnyKind(v), ""
	switch o := v.Get(object).(type) {
	case *gateway.Route:
		why = reason.unattachedRoute(o)
	case *gateway.ListenerSet:
		why = reason.unattachedSet(o)
	}
	if why == "" {
		return ""
	}
	return reason.notAttached(object, why)
}

// Rejection is a parentRef of a route that is not accepted, or an object of which none of the
// route's parentRefs is.
type Rejection struct {
	gateway.Parent // without section and port for an object

	Why string
}

// Rejections returns what does not accept a route, of some of its parentRefs, whatever the
// policy kind; no object that has a parent of an unsupported kind, since that is not known.
func Rejections(v *snapshot.View, r *gateway.Route, parents []gateway.Parent) []Rejection {
	reason := ofAnyKind(v)
	var all, out []Rejection
	var accepted []api.Ref
	for _, p := range parents {
		set, _ := v.Get(p.Ref()).(*gateway.ListenerSet)
		if why := reason.parent(p, r); why != "" && (set == nil || set.Unread == api.Ref{}) {
			all = append(all, Rejection{p, why})
		} else if len(parents) > 1 {
			accepted = append(accepted, p.Ref())
		}
	}
	for _, x := range all {
		if !slices.Contains(accepted, x.Ref()) {
			x.Section, x.Port = "", 0
		}
		if !slices.ContainsFunc(out, func(o Rejection) bool { return o.Parent == x.Parent }) {
			out = append(out, x)
		}
	}
	return out
}

// Whole reports whether none of the route's parentRefs to the object is accepted.
func (x *Rejection) Whole() bool { return x.Section == "" && x.Port == 0 }

// Text says what the rejection does to a route; more is "" or " any more".
func (x *Rejection) Text(r *gateway.Route, more string) string {
	if x.Whole() {
		return fmt.Sprintf("no request reaches %s on %s%s: %s", r.Ref(), x.Ref(), more, x.Why)
	}
	return fmt.Sprintf("a parentRef of %s has no effect%s: %s", r.Ref(), more, x.Why)
}

// Before returns why the route was not accepted before, "" if it was, given what did not
// accept it then; ok is false if it had no such parentRef.
func (x *Rejection) Before(old *gateway.Route, was []Rejection) (why string, ok bool) {
	if !slices.ContainsFunc(old.Parents, func(p gateway.Parent) bool { return p == x.Parent || x.Whole() && p.Ref() == x.Ref() }) {
		return "", false
	}
	for _, o := range was {
		if o.Parent == x.Parent || o.Whole() && o.Ref() == x.Ref() {
			return o.Why, true
		}
	}
	return "", true
}

// unattachedRoute returns why none of a route's parents accepts it, empty if one does.
func (reason *noPathReason) unattachedRoute(r *gateway.Route) string {
	var all []string
	for _, p := range r.Parents {
		why := reason.parent(p, r)
		if why == "" {
			return ""
		}
		all = append(all, why)
	}
	for _, p := range r.Unread {
		all = append(all, unsupportedParent(p))
	}
	if len(all) == 0 {
		return "it has no parentRefs"
	}
	return strings.Join(all[:min(len(all), maxParents)], ", ") + api.More(", and ", len(all)-maxParents, "")
}

func unsupportedParent(parent api.Ref) string {
	if parent == gateway.DefaultGateways {
		return "it uses default gateways, which are not supported"
	}
	text := fmt.Sprintf("%s is of kind %s, which is not supported", parent, parent.PolicyKind())
	if meant := ParentKindMeant(parent.Kind); meant != "" {
		text += fmt.Sprintf(": did you mean %s?", meant)
	}
	return text
}

// parent returns why a parent does not accept a route, empty if it does.
func (reason *noPathReason) parent(p gateway.Parent, r *gateway.Route) string {
	o := reason.view.Get(p.Ref())
	set, isSet := o.(*gateway.ListenerSet)
	_, isService := o.(*gateway.Service)
	switch {
	case isSet && reason.unattachedSet(set) != "":
		return set.Ref().String() + " is not attached to any Gateway"
	case isService && !reason.shape.mesh, !isService && o != nil && !reason.shape.gateway:
		return fmt.Sprintf("policies of kind %s do not apply to routes of %s", reason.kind.Kind, p.Ref())
	case isService, o == nil:
		return MissingParent(reason.view, p)
	default:
		return gateway.RejectReason(r, p, listenersOf(o), reason.view.NamespaceLabels(r.Namespace))
	}
}

// unattachedSet returns why a listener set is not attached to a gateway, empty if it is.
func (reason *noPathReason) unattachedSet(s *gateway.ListenerSet) string {
	g := reason.view.Gateway(s.GatewayNamespace, s.GatewayName)
	switch {
	case s.Unread != api.Ref{}:
		return unsupportedParent(s.Unread)
	case g == nil:
		return fmt.Sprintf("Gateway %s/%s does not exist", s.GatewayNamespace, s.GatewayName)
	case !g.Sets.Allows(g.Namespace, s.Namespace, reason.view.NamespaceLabels(s.Namespace)):
		return fmt.Sprintf("the allowedListeners of %s do not allow listener sets from namespace %s", g.Ref(), s.Namespace)
	default:
		return ""
	}
}

// missingParts returns what an attached route lacks for a path of the kind through the
// rules that a target selects; "" if it lacks nothing.
func (reason *noPathReason) missingParts(r *gateway.Route, at policykind.Target) string {
	rules := rulesAt(reason.kind, r, at)
	switch {
	case !reason.shape.includesRoute(r.Kind):
		return fmt.Sprintf("policies of kind %s do not apply to routes of kind %s", reason.kind.Kind, r.Kind)
	case reason.end() < gateway.LevelRule:
		return ""
	case len(rules) == 0:
		return fmt.Sprintf("%s has no rules", at)
	case !slices.ContainsFunc(rules, func(i int) bool { return reason.controls(r, i) }):
		return fmt.Sprintf("%s has none of the fields that policies of kind %s control", at, reason.kind.Kind)
	case reason.end() < gateway.LevelBackend:
		return ""
	default:
		return reason.noBackend(r, at, rules)
	}
}

// end returns where paths through routes end: in a mesh they end there, too.
func (reason *noPathReason) end() gateway.Level {
	return max(reason.shape.gatewayEnd, reason.shape.meshEnd)
}

// controls reports whether the kind controls a field of a rule. It returns true for a
// kind that controls no fields of routes, as most kinds.
func (reason *noPathReason) controls(r *gateway.Route, rule int) bool {
	members, controlled := membersOf(reason.kind, gateway.Path{Route: r, Rule: rule})
	return !controlled || len(members) > 0
}

// noBackend returns why none of the rules of a route sends requests to a backend, empty
// if one does.
func (reason *noPathReason) noBackend(r *gateway.Route, at policykind.Target, rules []int) string {
	why := fmt.Sprintf("%s has no backends", at)
	for _, i := range rules {
		backends := r.Rules[i].Backends
		if len(backends) == 0 && reason.kind.ShortPaths {
			return ""
		}
		for _, b := range backends {
			if reaches(reason.view, r, b.Object) {
				return ""
			}
			why = snapshot.NoGrant(r.Ref(), b.Object)
		}
	}
	return why
}
