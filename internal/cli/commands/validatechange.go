package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/customresource"
	"overrule.dev/overrule/internal/cli/manifest"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/lookup"
	"overrule.dev/overrule/internal/policykind"
)

// definition returns what validates the objects of a kind: its definition in the
// manifests, on the cluster, or a built-in one; nil if there is none.
func (c *changeEvaluator) definition(ctx context.Context, kinds *manifest.Kinds, ref api.PolicyKind) *customresource.Kind {
	if c.raw.stored == nil || kinds.Defined(ref) || !strings.Contains(ref.Group, ".") || ref == manifest.KindCRD {
		return kinds.CRD(ref)
	}
	k, known := c.definitions[ref]
	if known {
		return k
	}
	k = kinds.CRD(ref)
	_, resource := c.app.resource(ref)
	content, err := c.raw.stored.get(ctx, api.Ref{Group: manifest.KindCRD.Group, Kind: manifest.KindCRD.Kind, Name: cmp.Or(resource, plural(ref)) + "." + ref.Group})
	if err == nil && content != nil {
		var crd apiextensionsv1.CustomResourceDefinition
		if err = runtime.DefaultUnstructuredConverter.FromUnstructured(content, &crd); err == nil {
			k = customresource.New(&crd)
		}
	}
	if err != nil && !isAbsent(err) {
		c.app.warnf("skipping the schema of %s on the cluster: %v", ref, err)
	}
	c.definitions[ref] = k
	return k
}

// storeChange returns the object of a step as the API server would store it. If the
// API server rejects it, the decision is a denial.
func (c *changeEvaluator) storeChange(ctx context.Context, s step) (manifest.Stored, *guard.Decision, error) {
	out := manifest.Stored{Object: s.object}
	if s.remove {
		return out, nil, nil
	}
	ref, definition := s.object.Ref(c.kinds, c.namespace), c.definition(ctx, c.kinds, s.object.Kind)
	var old *manifest.Object
	var err error
	if definition != nil {
		if old, err = c.storedObject(ctx, ref); err != nil {
			return out, nil, err
		}
	}
	out, err = s.object.Store(ctx, definition, old, c.namespace)
	if errors.Is(err, customresource.ErrDefinition) {
		c.app.warnOnce(fmt.Sprintf("%v; its objects are not validated", err))
		err = nil
	}
	out.Problems = c.app.validate.reported(out.Problems)
	if err != nil || !out.Rejected() && (!c.app.validate.strict() || len(out.Problems) == 0) {
		return out, nil, err
	}
	return out, c.rejection(ref, old != nil, out.Problems), nil
}

// storedObject returns the object that exists, nil if there is none.
func (c *changeEvaluator) storedObject(ctx context.Context, ref api.Ref) (*manifest.Object, error) {
	kind := ref.PolicyKind()
	if _, known := c.raw.objects[ref]; !known && c.kinds.Reads(kind) && kind != policykind.KindProfile && c.view.Get(ref) == nil {
		return nil, nil
	}
	o, err := c.raw.get(ctx, ref)
	if apierrors.IsForbidden(err) {
		c.app.warnf("%v; it is validated as if it did not exist", err)
		return nil, nil
	}
	return o, err
}

// rejection returns the decision about an object that the API server rejects.
func (c *changeEvaluator) rejection(ref api.Ref, exists bool, problems []manifest.Problem) *guard.Decision {
	out := &guard.Decision{Change: guard.Change{Operation: guard.Create, After: lookup.Reference(ref), User: c.user}, After: c.view}
	if exists {
		out.Change.Operation, out.Change.Before = guard.Update, lookup.Reference(ref)
	}
	for _, p := range problems {
		if f := finding(p); p.Unknown && !c.app.validate.strict() {
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
func (c *changeEvaluator) unevaluated(ref api.Ref, stored manifest.Stored, remove bool) *guard.Decision {
	old := c.raw.objects[ref].object
	c.raw.record(ref, stored.Object, c.now, remove)
	why, advice := c.kinds.NotRead(stored.Object)
	if len(stored.Problems) == 0 && (why == "" || remove) {
		return nil
	}
	out := c.rejection(ref, old != nil, stored.Problems)
	if why != "" {
		out.Warnings = append(out.Warnings, guard.Finding{Code: api.ReasonNotRead, Action: api.Warn, What: why, Advice: advice, Field: "kind"})
	}
	return out
}

// warnSchemaFindings prints why the API server rejects an object of a change, and which
// fields of it it does not know.
func (t *terminal) warnSchemaFindings(d *guard.Decision) {
	for _, f := range slices.Concat(d.Denials, d.Warnings) {
		if f.Code == api.ReasonSchemaInvalid || f.Code == api.ReasonUnknownField {
			t.warnf("%s: %s", d.Change.Object().Ref(), f.Message())
		}
	}
}
