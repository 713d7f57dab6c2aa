package guard

import (
	"context"
	"fmt"
	"maps"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// UnlistedKindError reports that a write cannot be evaluated: the answer may depend on
// policies of a kind that was never listed.
type UnlistedKindError struct {
	Kind api.PolicyKind
	// What the write may do, and Advice what to do about that.
	What, Advice string
}

// Error implements error.
func (e *UnlistedKindError) Error() string {
	return fmt.Sprintf("policies of kind %s are not listed yet, and this write %s; %s", e.Kind, e.What, e.Advice)
}

// unlistedKind is the evaluation of a write against a kind that was never listed: a policy
// of it, with overrides, may be attached to any object.
type unlistedKind struct {
	ev   *evaluation
	kind *policykind.Kind
	// lost is a path on which such an override may have been in force and is not
	// after the write, unmet one on which a constraint may newly be violated.
	lost, unmet *effective.Effective
}

// checkUnlisted returns an *UnlistedKindError if the answer may depend on policies that
// were never listed. Users who are allowed to override all policies of the kind may do
// what its overrides prevent; system deletions are not delayed, and a denial stands
// whatever those policies say.
func (ev *evaluation) checkUnlisted(ctx context.Context) error {
	if ev.writesPolicy() || len(ev.findings.withAction(api.Deny)) > 0 {
		return nil
	}
	for _, k := range ev.before.Unlisted() {
		u, err := ev.evaluateUnlisted(k)
		if err != nil {
			return err
		}
		if err := u.err(ctx); err != nil {
			return err
		}
	}
	return nil
}

// evaluateUnlisted walks the paths of a kind that the write touches; with a new owner also
// as if the object were deleted with it.
func (ev *evaluation) evaluateUnlisted(k *policykind.Kind) (*unlistedKind, error) {
	all := func(v *snapshot.View) *snapshot.View {
		return v.WithKinds(slices.Concat(v.Kinds(), []*policykind.Kind{k}))
	}
	u := &unlistedKind{kind: k, ev: &evaluation{guard: ev.guard, change: ev.change, budget: ev.budget, before: all(ev.before), after: all(ev.after), everyKindUnlisted: true}}
	if k.MayOverride() && (!slices.Contains(ev.after.Unlisted(), k) || u.removesAttached()) {
		u.lost = &effective.Effective{Kind: k}
	}
	switch o := ev.change.Object().(type) {
	case *policykind.Profile:
		return u, nil
	case *policykind.Definition:
		if kind := o.Defines(); u.ev.after.Count(kind) == u.ev.before.Count(kind) {
			return u, nil
		}
		return u, u.walk(effective.Scope{All: true})
	}
	if err := u.walk(u.ev.scope()); err != nil || ev.change.Owner == "" || ev.change.Before == nil {
		return u, err
	}
	u.ev.change.After, u.ev.after = nil, u.ev.before.With(snapshot.Delete(ev.change.Before.Ref()))
	u.ev.overrides.candidates, u.ev.requests = nil, requests{}
	return u, u.walk(u.ev.scope())
}

// removesAttached reports whether the write may remove policies of the kind, or the grants
// by which they are attached, while what they are attached to stays.
func (u *unlistedKind) removesAttached() bool {
	if g, ok := u.ev.change.Before.(*gateway.Grant); ok {
		return u.kind.Targets.Namespaces == api.NamespacesReferenceGrant && grantsKind(g, u.kind)
	}
	all := api.PolicyKind{Group: api.GatewayGroup, Kind: gateway.KindReferenceGrant}
	if u.kind.Targets.Namespaces == api.NamespacesReferenceGrant && u.ev.after.Count(all) < u.ev.before.Count(all) {
		return true
	}
	t := &u.kind.Targets
	_, ok := u.ev.change.Before.(*gateway.Namespace)
	return ok && u.ev.change.After == nil && (t.Namespaces != "" && t.Namespaces != api.NamespacesOwn || len(t.ClassFrom) > 0 || u.kind.Attachment.ParametersRef)
}

func (u *unlistedKind) walk(s effective.Scope) error {
	s.Kinds = []api.PolicyKind{u.kind.Ref()}
	s.Empty = s.Kinds
	compare := func(s effective.Scope) error {
		return u.ev.guard.Engine.Compare(u.ev.before, u.ev.after, s, u.ev.budget, u.evaluatePair)
	}
	err := u.ev.trackRequests()
	if err == nil {
		err = compare(s)
	}
	if s.Objects = u.ev.othersScope().Objects; err == nil && len(s.Objects) > 0 {
		err = compare(effective.Scope{Objects: s.Objects, Kinds: s.Kinds, Empty: s.Kinds})
	}
	if others := u.ev.otherListenersScope([]*policykind.Kind{u.kind}); err == nil && len(others.Objects) > 0 {
		others.Empty = others.Kinds
		err = compare(others)
	}
	if err != nil {
		return fmt.Errorf("compare the paths of %s: %w", u.kind.Ref(), err)
	}
	return nil
}

// evaluatePair evaluates one path, before and after.
func (u *unlistedKind) evaluatePair(p effective.Pair) error {
	if u.unmet == nil && p.After != nil && (p.Before == nil || u.mayReattach(p)) && u.constrainedOn(p) {
		u.unmet = p.After
	}
	if u.lost != nil || p.Before == nil || !u.kind.MayOverride() {
		return nil
	}
	loses, err := u.losesOverride(p)
	if loses {
		u.lost = p.Before
	}
	return err
}

// losesOverride reports whether an override that is attached to an element of a path would
// not be in force after the write on what takes its traffic.
func (u *unlistedKind) losesOverride(p effective.Pair) (bool, error) {
	if p.After != nil && u.mayReattach(p) {
		return true, nil
	}
	for l := gateway.LevelGatewayClass; l <= gateway.LevelBackend; l++ {
		successors, err := u.ev.successors(p, effective.Override{Level: l}, false)
		if err != nil {
			return false, err
		}
		for _, successor := range successors {
			if u.ev.ofNeighbor(effective.Override{Level: l}, p.Before) || successor.by.unsure != "" {
				continue
			}
			if u.relabelled() {
				return true, nil
			}
			goesAlong := viaUnreadParent(successor.Path) && movesAlong(successor.Path, l)
			if !goesAlong && !sameElement(&p.Before.Path, &successor.Path, l) {
				return true, nil
			}
		}
	}
	return false, nil
}

// mayReattach reports whether other policies may be attached to a path that stays: an
// element of it is another one, was deleted while the path still names it, or has other
// labels or ports.
func (u *unlistedKind) mayReattach(p effective.Pair) bool {
	if u.ev.change.After == nil || u.relabelled() {
		return true
	}
	was, is := &p.Before.Path, &p.After.Path
	for l := gateway.LevelGatewayClass; l <= gateway.LevelBackend; l++ {
		if !sameElement(was, is, l) {
			return true
		}
	}
	return false
}

// constrainedOn reports whether a constraint that denies is evaluated on a path
// after the write, and binds it.
func (u *unlistedKind) constrainedOn(p effective.Pair) bool {
	for _, c := range u.ev.after.Constraints(u.kind.Ref()) {
		if level, on := c.On(&p.After.Path, u.ev.after); on && c.Enforcement == api.Deny && u.ev.binds(c, level, p) {
			return true
		}
	}
	return false
}

// err returns nil if the answer does not depend on the kind for this user.
func (u *unlistedKind) err(ctx context.Context) error {
	if err := u.ev.findSystemDeletion(ctx); err != nil || u.ev.deletion.reason != "" {
		return err
	}
	const wait = "retry, or ask the cluster administrator to check /readyz"
	e := &UnlistedKindError{Kind: u.kind.Ref(), Advice: wait}
	if u.lost != nil {
		every := api.Ref{Group: e.Kind.Group, Kind: e.Kind.Kind}
		may, err := (&authorizer{ev: u.ev, ctx: ctx, known: make(map[api.Ref]bool)}).mayOverride(every)
		if err != nil {
			return err
		}
		if !may {
			e.What = "may disable their overrides" + onPathText(u.lost)
			e.Advice += ", or check whether you are allowed to override them all: " + u.ev.checkCommand(every)
			return e
		}
	}
	if u.unmet != nil {
		e.What = "may violate a constraint on them" + onPathText(u.unmet)
		return e
	}
	return nil
}

// onPathText names a path, if one is known.
func onPathText(e *effective.Effective) string {
	if len(e.Path.Elements()) == 0 {
		return ""
	}
	return " on " + pathText(e)
}

// sameElement reports whether two paths have the same element at a level.
func sameElement(x, y *gateway.Path, l gateway.Level) bool {
	a, b := x.Element(l), y.Element(l)
	a.Index, b.Index = nil, nil
	return a == b && (l != gateway.LevelRule || ownRuleName(x) == ownRuleName(y) && hasRuleName(x.Route, a.Section) == hasRuleName(y.Route, b.Section))
}

// ownRuleName returns the name that the rule of a path has itself, "" for none.
func ownRuleName(p *gateway.Path) string {
	if p.Route == nil || p.Rule < 0 {
		return ""
	}
	return p.Route.Rules[p.Rule].Name
}

// hasRuleName reports whether a rule of a route has a name itself: an unnamed one that is
// called by its position cannot be targeted by that name.
func hasRuleName(r *gateway.Route, name string) bool {
	return r != nil && slices.ContainsFunc(r.Rules, func(rule gateway.Rule) bool { return rule.Name == name })
}

// relabelled reports whether policies that select by labels or by the name of a port, or
// that the object attaches to itself, may be on it before and not after, or the reverse.
func (u *unlistedKind) relabelled() bool {
	before, after := u.ev.change.Before, u.ev.change.After
	if before == nil || after == nil {
		return false
	}
	was, _ := before.(*gateway.Service)
	is, _ := after.(*gateway.Service)
	return !maps.Equal(gateway.LabelsOf(before), gateway.LabelsOf(after)) || !u.ev.after.SameReferences(before, after) ||
		was != nil && is != nil && !slices.Equal(was.Ports, is.Ports)
}

// grantsKind reports whether a grant is for policies of a kind.
func grantsKind(g *gateway.Grant, k *policykind.Kind) bool {
	return slices.ContainsFunc(g.From, func(f gateway.GrantFrom) bool { return f.Group == k.Group && f.Kind == k.Kind })
}
