package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// KindReader is asked about the policy kinds when what says how they are
// read is written.
type KindReader interface {
	// Profiles returns the kinds that have a profile.
	Profiles() []api.ProfileInForce
	// Schema returns the schema of a kind, nil if the kind is not defined.
	Schema(ctx context.Context, kind api.PolicyKind) (*apiextensionsv1.JSONSchemaProps, error)
	// ViewAfterKindChange returns the view as it would be after a *policykind.Profile or a
	// *policykind.Definition is written: before is nil on a create, after on a
	// delete. Policies of kinds that are read in another way then are read
	// again; where nothing is, it returns v itself. The error is a
	// *policykind.DefinedError where the definition would be a second one of a kind.
	ViewAfterKindChange(ctx context.Context, v *snapshot.View, before, after snapshot.Object) (*snapshot.View, error)
}

// prepareKinds evaluates a change of how policies are read: a profile, or a definition of
// a policy kind.
func (ev *evaluation) prepareKinds(ctx context.Context) (effective.Scope, error) {
	if p, ok := ev.change.After.(*policykind.Profile); ok {
		if err := ev.checkProfile(ctx, p); err != nil {
			return effective.Scope{}, err
		}
	}
	if ev.guard.KindReader == nil || len(ev.findings.withAction(api.Deny)) > 0 {
		return effective.Scope{}, nil
	}
	after, err := ev.guard.KindReader.ViewAfterKindChange(ctx, ev.before, ev.change.Before, ev.change.After)
	if second, ok := errors.AsType[*policykind.DefinedError](err); ok {
		ev.report(api.ReasonNotRead, api.Deny, Finding{What: second.Error(), Advice: "define another kind, or delete the first definition before"})
		return effective.Scope{}, nil
	}
	if err != nil {
		return effective.Scope{}, fmt.Errorf("reread policies for %s: %w", ev.change.Object().Ref(), err)
	}
	ev.after = after
	ev.reportScale()
	if after == ev.before {
		return effective.Scope{}, nil
	}
	if err := ev.reportRemovedConstraints(ctx, after); err != nil {
		return effective.Scope{}, err
	}
	kinds := changedKinds(ev.before, after)
	ev.overrides.lessProtected = lessProtected(ev.before, after, kinds)
	if controllersChanged(ev.before, after, kinds) {
		kinds = nil // a controller that becomes known excludes others
	}
	return effective.Scope{All: true, Kinds: kinds}, nil
}

// controllersChanged reports whether the profiles of some kinds name other controllers.
func controllersChanged(before, after *snapshot.View, kinds []api.PolicyKind) bool {
	named := func(v *snapshot.View, ref api.PolicyKind) []string {
		if k := v.Kind(ref); k != nil {
			return k.Controllers
		}
		return nil
	}
	return slices.ContainsFunc(kinds, func(ref api.PolicyKind) bool { return !slices.Equal(named(before, ref), named(after, ref)) })
}

// lessProtection says in what respects a kind protects overrides less after the write,
// "" for none.
type lessProtection struct {
	above  string // overrides that are attached above routes
	routes string // overrides that are attached to routes, to their namespaces or below
}

// of returns it for an override at a level.
func (l lessProtection) of(at gateway.Level) string {
	if at >= gateway.LevelRouteNamespace {
		return l.routes
	}
	return l.above
}

// lessProtected returns those of the kinds, read in both views, that protect overrides
// less in the second, and in what respects.
func lessProtected(before, after *snapshot.View, kinds []api.PolicyKind) map[api.PolicyKind]lessProtection {
	out := make(map[api.PolicyKind]lessProtection)
	for _, ref := range kinds {
		was, is := before.Kind(ref), after.Kind(ref)
		if was == nil || is == nil {
			continue
		}
		if routes := was.RouteOverridesWeakenedBy(is); len(routes) > 0 {
			out[ref] = lessProtection{above: strings.Join(was.WeakenedBy(is), "; "), routes: strings.Join(routes, "; ")}
		}
	}
	return out
}

// reportScale warns of a definition with a scale subresource on a field that is read of
// its policies: the webhook denies its writes.
func (ev *evaluation) reportScale() {
	d, ok := ev.change.After.(*policykind.Definition)
	if !ok {
		return
	}
	if kind := ev.after.Kind(d.Defines()); kind != nil && len(kind.Scales(policykind.ScalePaths(&d.CustomResourceDefinition))) > 0 {
		ev.report(api.ReasonNotRead, api.Warn, Finding{
			What:   fmt.Sprintf("the scale subresource of %s writes a field that is part of the policies, so its writes are denied", kind.Ref()),
			Advice: "remove it from the definition, or list the field under ignore in the kind's PolicyProfile",
		})
	}
}

// changedKinds returns the kinds that two views read in different ways, nil if there are
// none.
func changedKinds(before, after *snapshot.View) []api.PolicyKind {
	var out []api.PolicyKind
	for _, k := range before.Kinds() {
		if after.Kind(k.Ref()) != k {
			out = append(out, k.Ref())
		}
	}
	for _, k := range after.Kinds() {
		if before.Kind(k.Ref()) == nil {
			out = append(out, k.Ref())
		}
	}
	return out
}

// VersionReader is implemented by a KindReader that knows the versions of a CustomResourceDefinition.
type VersionReader interface {
	// ViewsInOtherVersions returns the views as they would be if the policies of the definition
	// were written by another version than the one that is read: by each that the
	// write brings or changes. v is the view after the write.
	ViewsInOtherVersions(ctx context.Context, v *snapshot.View, was, is *policykind.Definition) ([]snapshot.VersionView, error)
}

// evaluateVersions evaluates a definition by what its other versions would store: a write
// in one of them, of a status or by a client that has never seen the policy, removes what
// the version does not have, and stores its defaults.
func (ev *evaluation) evaluateVersions(ctx context.Context) error {
	was, edited := ev.change.Before.(*policykind.Definition)
	is, stays := ev.change.After.(*policykind.Definition)
	kinds, ok := ev.guard.KindReader.(VersionReader)
	if !edited || !stays || !ok {
		return nil
	}
	views, err := kinds.ViewsInOtherVersions(ctx, ev.after, was, is)
	if err != nil {
		return fmt.Errorf("convert policies to the versions of %s: %w", is.Ref(), err)
	}
	for _, r := range views {
		o := &evaluation{guard: ev.guard, change: ev.change, budget: ev.budget, indirect: true, before: ev.before, after: r.View, overrides: overrides{pairs: ev.overrides.pairs}}
		scope := effective.Scope{All: true, Kinds: []api.PolicyKind{is.Defines()}}
		if err := ev.guard.Engine.Compare(o.before, o.after, scope, ev.budget, o.evaluateOwnedPath); err != nil {
			return fmt.Errorf("compare effective policies: %w", err)
		}
		for _, t := range o.overrides.lost {
			t.version = r.Version
		}
		ev.addLossesOf(o)
	}
	return nil
}
