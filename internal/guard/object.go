package guard

import (
	"fmt"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
)

// otherAlone finds what is to be told of an object that is no policy, before
// any path is looked at.
func (j *judge) otherAlone() {
	switch o := j.change.Object().(type) {
	case *gateway.Route:
		j.routeAlone()
	case *gateway.ListenerSet:
		j.setAlone(o)
	case *gateway.Grant:
		j.grantAlone()
	}
}

// setAlone tells that a gateway does not take the listeners of a set.
func (j *judge) setAlone(s *gateway.ListenerSet) {
	if j.change.After != nil {
		var was []api.Ref
		if old, ok := j.change.Before.(*gateway.ListenerSet); ok {
			was = []api.Ref{old.Unread}
		}
		j.parentsAlone(was, []api.Ref{s.Unread})
	}
	g := j.after.Gateway(s.GatewayNamespace, s.GatewayName)
	if j.change.After == nil || g == nil || g.Sets.Admits(g.Namespace, s.Namespace, j.after.NamespaceLabels(s.Namespace)) {
		return
	}
	j.report(api.ReasonTargetNotFound, api.Warn, Finding{
		What: fmt.Sprintf("%s has no effect: the allowedListeners of %s do not admit listener sets of namespace %s, so neither routes nor policies reach its listeners",
			s.Ref(), g.Ref(), s.Namespace),
		Advice: fmt.Sprintf("ask the owner of %s", g.Ref().Key()),
	})
}

// grantAlone tells which policies lose a target with a ReferenceGrant.
func (j *judge) grantAlone() {
	for _, o := range objects(j.change) {
		for _, to := range o.(*gateway.Grant).To { //nolint:forcetypeassert // both are of one kind
			for p := range j.before.TargetsIn(api.PolicyKind{Group: to.Group, Kind: to.Kind}, o.Ref().Namespace) {
				j.lostTargets(p)
			}
			for p := range j.before.Selecting(api.PolicyKind{Group: to.Group, Kind: to.Kind}) {
				j.lostTargets(p)
			}
		}
	}
}

func (j *judge) lostTargets(p *policykind.Policy) {
	was, is := j.before.Targets(p), j.after.Targets(p)
	for i, t := range is {
		if t.Grant && t.Refused != "" && was[i].Refused == "" {
			ref := p.Ref()
			j.report(api.ReasonTargetNotFound, api.Warn, Finding{
				Policy: &ref, What: fmt.Sprintf("%s loses its target: %s", ref, t.Refused),
			})
		}
	}
}

// routeAlone tells what of a route Overrule does not read.
func (j *judge) routeAlone() {
	r, ok := j.change.After.(*gateway.Route)
	if !ok {
		return
	}
	var was []api.Ref
	if old, ok := j.change.Before.(*gateway.Route); ok {
		was = old.Unread
	}
	j.parentsAlone(was, r.Unread)
	if r.WantsDefaultGateways {
		j.report(api.ReasonNotRead, api.Warn, Finding{
			What:   "useDefaultGateways is experimental and not read: effective policies by way of default gateways are not known",
			Advice: "name the gateways in parentRefs",
		})
	}
}

// parentsAlone tells which parents the write adds that are not read.
func (j *judge) parentsAlone(was, is []api.Ref) {
	for _, p := range is {
		if p != (api.Ref{}) && !slices.Contains(was, p) {
			j.report(api.ReasonNotRead, api.Warn, Finding{
				What:   fmt.Sprintf("the parent %s is of a kind that is not read: effective policies by way of it are not known", withGroup(p)),
				Advice: "no override is seen to hold there, so do not take the route off a gateway that has one in its favour",
			})
		}
	}
}
