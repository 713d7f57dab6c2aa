package guard

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
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

// unlistedCheck checks whether the answer depends on policies that were never listed.
type unlistedCheck struct{ *evaluation }

// check returns an *UnlistedKindError if the answer may depend on policies that
// were never listed: whatever touches a path may disable an override on it. Users who are
// allowed to override all policies of the kind may do that; writes that change nothing that
// is read and system deletions are not delayed, and a denial stands whatever those policies
// say.
func (ev unlistedCheck) check(ctx context.Context) error {
	unlisted := ev.before.Unlisted()
	if len(unlisted) == 0 || ev.writesPolicy() || len(ev.findings.withAction(api.Deny)) > 0 ||
		ev.change.Owner == "" && reflect.DeepEqual(ev.change.Before, ev.change.After) {
		return nil
	}
	if err := ev.findSystemDeletion(ctx); err != nil || ev.deletion.reason != "" {
		return err
	}
	may := &authorizer{ev: ev.write, ctx: ctx, known: make(map[api.Ref]bool)}
	for _, k := range unlisted {
		touched, err := ev.touches(k)
		if err != nil {
			return err
		}
		if err := ev.errorOf(k, touched, may); err != nil {
			return err
		}
	}
	return nil
}

// errorOf returns an *UnlistedKindError for a write that touches paths of a kind, nil
// if the answer does not depend on the kind for this user.
func (ev unlistedCheck) errorOf(k *policykind.Kind, t touchedPaths, may *authorizer) error {
	e := &UnlistedKindError{Kind: k.Ref(), Advice: "retry, or ask the cluster administrator to check /readyz"}
	if t.lost && k.MayOverride() {
		all := api.Ref{Group: k.Group, Kind: k.Kind}
		permitted, err := may.mayOverride(all)
		if err != nil {
			return err
		}
		if !permitted {
			e.What = "may disable their overrides" + onPathText(t.before)
			e.Advice += ", or check whether you are allowed to override them all: " + ev.checkCommand(all)
			return e
		}
	}
	if t.constrained != nil {
		e.What = "may violate a constraint on them" + onPathText(t.constrained)
		return e
	}
	return nil
}

// touchedPaths are the paths that a write touches, of a kind whose policies are not known.
type touchedPaths struct {
	lost        bool                 // an override may be lost
	before      *effective.Effective // on this path, nil if it is not known
	constrained *effective.Effective // a constraint that denies applies here after the write, nil if none does
}

// touches returns what a write touches, as if policies of the kind were attached anywhere.
func (ev unlistedCheck) touches(k *policykind.Kind) (t touchedPaths, err error) {
	switch ev.change.Before.(type) {
	case *gateway.Grant:
		t.lost = k.Targets.Namespaces == api.NamespacesReferenceGrant
	case *gateway.Namespace:
		of := &k.Targets // policies in the namespace may be attached to objects that stay
		t.lost = ev.change.After == nil && (of.Namespaces != "" && of.Namespaces != api.NamespacesOwn || len(of.ClassFrom) > 0 || k.Attachment.ParametersRef || k.Attachment.Through != nil)
	}
	switch ev.change.Object().(type) {
	case *policykind.Profile:
		t.lost = ev.kinds.rereads(k) != ""
		return t, nil
	case *policykind.Definition:
		t.lost = ev.kinds.rereads(k) != "" || ev.kinds.removesObjects()
		return t, nil
	}
	all := func(v *snapshot.View) *snapshot.View { return v.WithKinds(append(slices.Clip(v.Kinds()), k)) }
	u := evaluationOf(ev.between(all(ev.before), all(ev.after)))
	u.everyKindUnlisted = true
	if err := u.trackRequests(); err != nil {
		return t, fmt.Errorf("find the requests that move: %w", err)
	}
	visit := func(p effective.Pair) error {
		if p.Before != nil && t.before == nil {
			t.lost, t.before = true, p.Before
		}
		if p.After != nil && t.constrained == nil && u.requirements.constrainedOn(k, p) {
			t.constrained = p.After
		}
		return nil
	}
	awaited, err := u.awaited()
	if err != nil {
		return t, fmt.Errorf("find the requests that come in by new listeners: %w", err)
	}
	scopes := []effective.Scope{u.scope(), u.othersScope(), u.otherListenersScope([]*policykind.Kind{k})}
	if awaited != nil {
		scopes = append(scopes, awaited.othersScope())
	}
	for _, s := range scopes {
		s.Kinds = []api.PolicyKind{k.Ref()}
		s.Empty = s.Kinds
		if err := ev.guard.Engine.Compare(u.before, u.after, s, ev.budget, visit); err != nil {
			return t, fmt.Errorf("compare the paths of %s: %w", k.Ref(), err)
		}
	}
	return t, nil
}

// constrainedOn reports whether a constraint that denies is evaluated on a path of a kind
// after the write, and binds it.
func (ev *requirements) constrainedOn(k *policykind.Kind, p effective.Pair) bool {
	return slices.ContainsFunc(ev.after.Constraints(k.Ref()), func(c *constraint.Constraint) bool {
		level, on := c.On(&p.After.Path, ev.after)
		return on && c.Enforcement == api.Deny && ev.binds(c, level, p)
	})
}

// onPathText names a path, if one is known.
func onPathText(e *effective.Effective) string {
	if e == nil {
		return ""
	}
	return " on " + pathText(e)
}
