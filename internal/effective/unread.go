package effective

import (
	"fmt"
	"slices"

	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// controllerOf returns the controller of a gateway's class if its implementation is
// known, else "": the gateway then counts as reading all kinds, as any root that is no
// gateway does.
func controllerOf(v *snapshot.View, g *gateway.Gateway) string {
	if g == nil {
		return ""
	}
	class, ok := v.Get((&gateway.Class{Name: g.Class}).Ref()).(*gateway.Class)
	if !ok || !policykind.KnownController(class.Controller, v.Kinds()) {
		return ""
	}
	return class.Controller
}

// UnreadReason returns why policies of the kind have no effect on the path: its gateway
// does not read them. It is empty if it does.
func (e *Effective) UnreadReason() string {
	if e.Unread == "" {
		return ""
	}
	return fmt.Sprintf("policies of kind %s are not read on %s: its GatewayClass %s has controller %s",
		e.Kind.Kind, e.Path.Gateway.Ref(), e.Path.Gateway.Class, e.Unread)
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

// maxUnread is the number of gateways that are named because they do not read a kind.
const maxUnread = 3

// Unread collects the gateways on which a policy has no effect, because they do not read
// its kind.
type Unread struct {
	Paths    int
	gateways orderedSet[*gateway.Gateway]
	reasons  []string // of the first gateways
}

// Add adds a path on which the policy is ignored.
func (u *Unread) Add(e *Effective) {
	u.Paths++
	if u.gateways.add(e.Path.Gateway); len(u.gateways.list) > len(u.reasons) && len(u.reasons) < maxUnread {
		u.reasons = append(u.reasons, e.UnreadReason())
	}
}

// Reasons returns the reason for each gateway, and for those beyond maxUnread their number.
func (u *Unread) Reasons() []string {
	if more := len(u.gateways.list) - len(u.reasons); more > 0 {
		return append(slices.Clip(u.reasons), fmt.Sprintf("they are not read on %d more gateways", more))
	}
	return u.reasons
}
