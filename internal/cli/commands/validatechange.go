package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/customresource"
	"overrule.dev/overrule/internal/cli/manifest"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
)

// changeValidator validates the objects of a change.
type changeValidator struct {
	app *app
	// onCluster is set if the change is evaluated against a cluster, whose definitions
	// are then used. cluster are those that have been read, nil if there is none.
	onCluster bool
	cluster   map[api.PolicyKind]*customresource.Kind
	warned    map[string]bool
}

func (a *app) newChangeValidator(s *source) *changeValidator {
	return &changeValidator{app: a, onCluster: s.set == nil, cluster: make(map[api.PolicyKind]*customresource.Kind), warned: make(map[string]bool)}
}

// definition returns what validates the objects of a kind: its definition in the
// manifests, on the cluster, or a built-in one; nil if there is none.
func (v *changeValidator) definition(ctx context.Context, kinds *manifest.Kinds, ref api.PolicyKind) *customresource.Kind {
	if !v.onCluster || kinds.Defined(ref) || !strings.Contains(ref.Group, ".") || ref == manifest.KindCRD {
		return kinds.CRD(ref)
	}
	if k, ok := v.cluster[ref]; ok {
		return k
	}
	k := kinds.CRD(ref)
	d, err := v.app.definition(ctx, ref)
	if err != nil {
		v.app.warnf("skipping the schema of %s on the cluster: %v", ref, err)
	}
	if d != nil {
		k = customresource.New(d)
	}
	v.cluster[ref] = k
	return k
}

// unvalidated returns the policy kinds of the objects of a change that have no definition.
func (c *changeEvaluator) unvalidated(ctx context.Context, of *change, kinds *manifest.Kinds) []api.PolicyKind {
	if of.flags.remove {
		return nil
	}
	return slices.DeleteFunc(unvalidatedKinds(of.set.Objects, kinds), func(k api.PolicyKind) bool {
		return c.validator.definition(ctx, kinds, k) != nil
	})
}

// store returns an object of a change as the API server would store it. old is the
// object that it updates, nil if it is created.
func (v *changeValidator) store(ctx context.Context, kinds *manifest.Kinds, o, old *manifest.Object, namespace string) (manifest.Stored, error) {
	out, err := o.Store(ctx, v.definition(ctx, kinds, o.Kind), old, namespace)
	if errors.Is(err, customresource.ErrDefinition) {
		if text := fmt.Sprintf("%v; its objects are not validated", err); !v.warned[text] {
			v.warned[text] = true
			v.app.warnf("%s", text)
		}
		err = nil
	}
	out.Problems = v.app.validate.reported(out.Problems)
	return out, err
}

// storeChange returns an object of the change as the API server would store it. If the
// API server rejects it, the decision is a denial.
func (c *changeEvaluator) storeChange(ctx context.Context, o *manifest.Object) (manifest.Stored, *guard.Decision, error) {
	if c.remove {
		return manifest.Stored{Object: o}, nil, nil
	}
	ref := o.Ref(c.kinds, c.namespace)
	var old *manifest.Object
	if c.validator.definition(ctx, c.kinds, o.Kind) != nil {
		var err error
		if old, err = c.storedObject(ctx, ref); err != nil {
			return manifest.Stored{Object: o}, nil, err
		}
	}
	stored, err := c.validator.store(ctx, c.kinds, o, old, c.namespace)
	if err != nil || !stored.Rejected() && (!c.validator.app.validate.strict() || len(stored.Problems) == 0) {
		return stored, nil, err
	}
	return stored, c.rejection(ref, old != nil, stored.Problems), nil
}

// storedObject returns the object that exists, nil if there is none.
func (c *changeEvaluator) storedObject(ctx context.Context, ref api.Ref) (*manifest.Object, error) {
	kind := ref.PolicyKind()
	if _, known := c.raw.objects[ref]; !known && c.kinds.Reads(kind) && kind != policykind.KindProfile && c.view.Get(ref) == nil {
		return nil, nil
	}
	o, err := c.raw.get(ctx, ref)
	if apierrors.IsForbidden(err) {
		c.validator.app.warnf("%v; it is validated as if it did not exist", err)
		return nil, nil
	}
	return o, err
}

// undecoded is an object that is not decoded.
type undecoded api.Ref

// Ref implements snapshot.Object.
func (u undecoded) Ref() api.Ref { return api.Ref(u) }

// rejection returns the decision about an object that the API server rejects.
func (c *changeEvaluator) rejection(ref api.Ref, exists bool, problems []manifest.Problem) *guard.Decision {
	out := &guard.Decision{Change: guard.Change{Operation: guard.Create, After: undecoded(ref), User: c.user}, After: c.view}
	if exists {
		out.Change.Operation, out.Change.Before = guard.Update, undecoded(ref)
	}
	for _, p := range problems {
		if f := finding(p); p.Unknown && !c.validator.app.validate.strict() {
			out.Warnings = append(out.Warnings, f)
		} else {
			if f.Action = api.Deny; f.Code == api.ReasonNotRead {
				f.Code = api.ReasonSchemaInvalid
			}
			out.Denials = append(out.Denials, f)
		}
	}
	return out
}

// notServed returns the decision about an object whose kind an earlier step deletes.
func (c *changeEvaluator) notServed(ref api.Ref, o *manifest.Object) *guard.Decision {
	problem := customresource.Problem{
		Field: "kind", Message: fmt.Sprintf("no matches for kind %q: the change deletes its CustomResourceDefinition, or no longer serves it", o.Kind),
	}
	return c.rejection(ref, false, []manifest.Problem{{Object: o, Problem: problem}})
}

// finding returns a problem as a finding.
func finding(p manifest.Problem) guard.Finding {
	f := guard.Finding{Code: api.ReasonSchemaInvalid, Action: api.Deny, What: p.Message, Field: p.Field}
	switch {
	case p.Unknown && p.Field == "apiVersion":
		f.Code, f.Action = api.ReasonNotRead, api.Warn
	case p.Unknown:
		f.Code, f.Action = api.ReasonUnknownField, api.Warn
	}
	return f
}

// addWarnings adds the problems of an object that is not rejected to its decision.
func addWarnings(d *guard.Decision, problems []manifest.Problem) {
	var warnings []guard.Finding
	for _, p := range problems {
		warnings = append(warnings, finding(p))
	}
	d.Warnings = append(warnings, d.Warnings...)
}

// unevaluated records an object that effective policies do not depend on: a later object
// may define its kind. It returns the decision about it, nil if it has no problems and was
// probably not meant to have an effect.
func (c *changeEvaluator) unevaluated(ref api.Ref, stored manifest.Stored) *guard.Decision {
	old := c.raw.objects[ref].object
	c.raw.record(ref, stored.Object, c.now, c.remove)
	why, advice := c.kinds.NotRead(stored.Object)
	if len(stored.Problems) == 0 && (why == "" || c.remove) {
		return nil
	}
	out := c.rejection(ref, old != nil, stored.Problems)
	if why != "" {
		out.Warnings = append(out.Warnings, guard.Finding{Code: api.ReasonNotRead, Action: api.Warn, What: why, Advice: advice, Field: "kind"})
	}
	return out
}

// accepted returns an object of the change as the API server would store it if it created
// it; nil if it would reject it, which is found when the object is evaluated.
func (v *changeValidator) accepted(ctx context.Context, kinds *manifest.Kinds, o *manifest.Object, namespace string) *manifest.Object {
	stored, err := o.Store(ctx, v.definition(ctx, kinds, o.Kind), nil, namespace)
	if err == nil && stored.Rejected() {
		return nil
	}
	return stored.Object
}

// check checks the objects of a change before any is evaluated, except those that the API
// server rejects, and adds their kinds to kinds.
func (v *changeValidator) check(ctx context.Context, set *manifest.Set, kinds *manifest.Kinds, namespace string, remove bool) error {
	return set.CheckAccepted(kinds, namespace, func(o *manifest.Object) *manifest.Object {
		if remove {
			return o
		}
		return v.accepted(ctx, kinds, o, namespace)
	})
}

// decode decodes an object of the change, unless the API server rejects it.
func (c *changeEvaluator) decode(ctx context.Context, kinds *manifest.Kinds, s step) error {
	o := s.object
	_, err := o.Decode(kinds, c.namespace, c.now, false)
	if err == nil || s.remove {
		return err
	}
	if o = c.validator.accepted(ctx, kinds, o, c.namespace); o == nil {
		return nil
	}
	_, err = o.Decode(kinds, c.namespace, c.now, false)
	return err
}

// warnSchemaFindings prints why the API server rejects an object of a change, and which
// fields of it it does not know.
func (a *app) warnSchemaFindings(d *guard.Decision) {
	for _, f := range slices.Concat(d.Denials, d.Warnings) {
		if f.Code == api.ReasonSchemaInvalid || f.Code == api.ReasonUnknownField {
			a.warnf("%s: %s", d.Change.Object().Ref(), f.Message())
		}
	}
}
