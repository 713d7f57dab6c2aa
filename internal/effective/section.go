package effective

import (
	"slices"
	"strconv"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// Missing reports whether a target of kind k, which is not of Gateway API, does not exist: this
// is known of kinds whose objects are read.
func Missing(v *snapshot.View, k *policykind.Kind, ref api.Ref) bool {
	kind := ref.PolicyKind()
	return k.ReadsObjects(kind) && v.Selectable(kind) && v.Get(ref) == nil
}

// Exists reports whether a target of a policy of kind k and its section exist. It returns
// true for a target of an unsupported kind and for a virtual one unless it is Missing, since
// this cannot be decided, and for a namespace, which need not be in the cache.
func Exists(v *snapshot.View, k *policykind.Kind, t policykind.Target) bool {
	if t.Selector != nil {
		return false // it selected nothing
	}
	if t.Virtual || t.AttachedBy != "" || !gateway.Known(t.Ref.PolicyKind()) {
		return !Missing(v, k, t.Ref)
	}
	switch o := v.Get(t.Ref).(type) {
	case *gateway.Class, *gateway.Namespace:
		return t.Whole()
	case *gateway.Gateway:
		return t.Whole() || slices.ContainsFunc(v.Listeners(o), func(l gateway.ListenerMatch) bool { return ofGateway(k, &t, &l) })
	case *gateway.ListenerSet:
		return t.Whole() || gateway.HasListener(o.Listeners, t.Section, t.Port)
	case *gateway.Route:
		return t.Whole() || len(rulesAt(k, o, t)) > 0
	case *gateway.Service:
		named := t.Section == "" || o.Port(t.Section) != 0 || len(k.Targets.NumberedSections) > 0 && snapshot.HasSection(o, t.Section)
		return named && (t.Port == 0 || o.HasPort(t.Port))
	default:
		return t.Ref.Kind == gateway.KindNamespace && t.Whole()
	}
}

// rulesAt returns the positions of the rules that a target selects.
func rulesAt(k *policykind.Kind, r *gateway.Route, at policykind.Target) []int {
	if at.AttachedBy == policykind.ExtensionRef {
		return []int{at.Rule}
	}
	var out []int
	for i := range r.Rules {
		if at.Section == "" || SelectsRule(k, r, at.Section, i) {
			out = append(out, i)
		}
	}
	return out
}

// SelectsRule reports whether the sectionName of a policy's target selects the i-th rule
// of a route: one without a name only in kinds whose profile says so (SEMANTICS section 5).
func SelectsRule(k *policykind.Kind, r *gateway.Route, section string, i int) bool {
	return (r.Rules[i].Name != "" || k.Targets.UnnamedRules) && r.RuleAt(section, i)
}

// ofGateway reports whether a target that is a section or port of a gateway selects one of its
// listeners: those of its listener sets by their port, and in some kinds by a name that none of
// its own has.
func ofGateway(k *policykind.Kind, t *policykind.Target, l *gateway.ListenerMatch) bool {
	own := l.Set == nil || t.Section == "" || k.Targets.SetSections && !gateway.HasListener(l.Gateway.Listeners, t.Section, t.Port)
	return own && onListener(t, l.Listener)
}

func onListener(t *policykind.Target, l *gateway.Listener) bool {
	return l != nil && (t.Section == "" || t.Section == l.Name) && (t.Port == 0 || t.Port == l.Port)
}

// onPort reports whether a target selects the port of a backend or service. The names of
// the ports of other kinds than Service are not known: each may be the port. With numbers, a
// section may be the number of a port.
func onPort(v *snapshot.View, numbers bool, t *policykind.Target, object api.Ref, port int32) bool {
	if t.Port != 0 && t.Port != port || port == 0 {
		return false
	}
	s, ok := v.Get(object).(*gateway.Service)
	if !ok {
		return t.Section == "" || object.Kind != gateway.KindService || object.Group != ""
	}
	return s.HasPort(port) && (t.Section == "" || s.Port(t.Section) == port || numbers && t.Section == strconv.Itoa(int(port)))
}

// reaches reports whether a route is allowed to send traffic to a backend: in another
// namespace, only by a ReferenceGrant.
func reaches(v *snapshot.View, r *gateway.Route, backend api.Ref) bool {
	return backend.Namespace == r.Namespace || v.Granted(r.Ref().PolicyKind(), r.Namespace, backend)
}

// sameService reports whether the path ends at the service that it starts at, as does
// that of a mesh's route to its own parent. Policies on the service are then only at
// the root of the path.
func sameService(p gateway.Path) bool {
	return p.Service != nil && p.Backend.Object == p.Service.Ref()
}
