package webhook

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/rights"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/cases"
)

// The webhook gives the verdicts of the table that every entry point is tested with.
func TestVerdictCases(t *testing.T) {
	for _, c := range cases.Load(t) {
		t.Run(c.File, func(t *testing.T) {
			d := newTestServer(t, Options{Guard: &guard.Guard{Permissions: rights.Fixed(c.MayOverride, nil), BlastRadius: c.BlastRadiusLimit, MatchLimit: c.MaxMatches}})
			d.opts.Now = func() time.Time { return cases.Now }
			d.exist(t, c.Against, c.Changes[0].Object.GetKind())
			for i := range c.Changes {
				d.verdict(t, &c.Changes[i])
			}
		})
	}
}

// The webhook gives the verdicts of the rows of test/cases/guardrails, with and without the
// right to override. Definitions are read again by the cache, not here.
func TestGuardrails(t *testing.T) {
	for _, r := range cases.Guardrails(t) {
		kind := r.Steps[0].Change.Object.GetKind()
		if kind == "CustomResourceDefinition" {
			continue
		}
		t.Run(r.File+"/"+r.Name, func(t *testing.T) {
			d := newTestServer(t, Options{Guard: &guard.Guard{}})
			d.opts.Now = func() time.Time { return cases.Now }
			against := r.Against
			for i := range r.Steps {
				d.exist(t, against, kind)
				w := &r.Steps[i]
				for _, may := range []bool{true, false} {
					if may && w.Denied == "" {
						continue
					}
					d.opts.Guard.Permissions = rights.Fixed(may, nil)
					got := d.evaluate(t, asRequest(t, &w.Change))
					assert.Empty(t, w.Mismatch(got, may), "step %d, with the right to override: %t: %+v", i, may, got)
				}
				a := d.validated(t, asRequest(t, &w.Change))
				assert.Equal(t, w.Denied == "", a.Allowed)
				assertWhole(t, a.Warnings)
				if !a.Allowed {
					assert.Contains(t, a.Result.Message, string(w.Denied)+": ")
				} else {
					d.made(t, &w.Change)
				}
				against = w.After(against)
			}
		})
	}
}

// exist makes objects exist, and lets writes of profiles read policies again.
func (d *testServer) exist(t *testing.T, objects []cases.Object, written string) {
	t.Helper()
	if written == api.KindPolicyProfile {
		d.opts.Guard.KindReader = rereads{t, objects}
	}
	for i := range objects {
		d.put(t, &objects[i])
	}
}

// put does what the informers would do about an object.
func (d *testServer) put(t *testing.T, o *cases.Object) {
	t.Helper()
	switch o.GetKind() {
	case "CustomResourceDefinition":
		crd := converted[apiextensionsv1.CustomResourceDefinition](t, o)
		if profile, ok := policykind.FromLabel(crd); ok {
			d.read(t, profile, policykind.Label, crd.Spec.Versions[0].Schema.OpenAPIV3Schema)
		}
		return
	case api.KindPolicyProfile:
		p := converted[api.PolicyProfile](t, o)
		v, _ := d.opts.Store.View()
		if k := v.Kind(api.PolicyKind{Group: p.Spec.Group, Kind: p.Spec.Kind}); k == nil || k.Source != policykind.Cluster { // the oldest profile is in force
			d.read(t, p.Spec, policykind.Cluster, nil)
		}
		return
	}
	gvk := o.GroupVersionKind()
	ref := api.PolicyKind{Group: gvk.Group, Kind: gvk.Kind}
	v, _ := d.opts.Store.View()
	object, err := snapshot.Decode(ref, v.Kind(ref), marshalled(t, o), policykind.InFlight(cases.Now))
	require.NoError(t, err)
	d.opts.Store.Apply(snapshot.Put(object))
}

// converted is an object as its type.
func converted[T any](t *testing.T, o *cases.Object) *T {
	t.Helper()
	out := new(T)
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, out))
	return out
}

// rereads returns the kinds after a write of a profile.
type rereads struct {
	t       *testing.T
	objects []cases.Object
}

func (rereads) Profiles() []api.ProfileInForce { return nil }

func (rereads) Schema(context.Context, api.PolicyKind) (*apiextensionsv1.JSONSchemaProps, error) {
	return nil, nil
}

func (r rereads) ViewAfterKindChange(v *snapshot.View, before, after snapshot.Object) (*snapshot.View, error) {
	profiles, err := policykind.NewProfiles()
	require.NoError(r.t, err)
	for i := range r.objects {
		if o := &r.objects[i]; o.GetKind() == api.KindPolicyProfile {
			require.NoError(r.t, profiles.Put(converted[api.PolicyProfile](r.t, o), 0))
		}
	}
	written := after
	if after != nil {
		require.NoError(r.t, profiles.Put(&after.(*policykind.Profile).PolicyProfile, 0))
	} else {
		written = before
		profiles.Remove(before.Ref().Name)
	}
	profiles.RemoveDeleting(written.Ref().Name)
	spec := written.(*policykind.Profile).Spec
	ref := api.PolicyKind{Group: spec.Group, Kind: spec.Kind}
	kinds := slices.DeleteFunc(slices.Clone(v.Kinds()), func(k *policykind.Kind) bool { return k.Ref() == ref })
	kind := profiles.Of(ref)
	for i := range r.objects {
		if o := &r.objects[i]; kind == nil && o.GetKind() == "CustomResourceDefinition" {
			if d := converted[apiextensionsv1.CustomResourceDefinition](r.t, o); d.Spec.Names.Kind == ref.Kind {
				kind, err = profiles.Defined(d)
				require.NoError(r.t, err)
			}
		}
	}
	if kind == nil {
		return v.WithKinds(kinds), nil
	}
	return v.WithKinds(kinds).WithUnlisted([]*policykind.Kind{kind}), nil
}

// read does what the watcher would do about a kind.
func (d *testServer) read(t *testing.T, profile api.PolicyProfileSpec, source policykind.Source, schema *apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	kind, err := policykind.Compile(profile, source)
	require.NoError(t, err)
	kind = kind.WithSchema(policykind.PackSchema(schema))
	d.opts.Store.AddKind(kind)
	d.opts.Store.KindListed(kind.Ref())
}

// marshalled is the JSON of an object, which may be nil.
func marshalled(t *testing.T, o *cases.Object) []byte {
	t.Helper()
	if o == nil {
		return nil
	}
	data, err := json.Marshal(o)
	require.NoError(t, err)
	return data
}

// asRequest is the request that an API server sends for a change.
func asRequest(t *testing.T, c *cases.Change) *admissionv1.AdmissionRequest {
	t.Helper()
	gvk := c.Object.GroupVersionKind()
	r := &admissionv1.AdmissionRequest{
		UID: uid, Operation: admissionv1.Operation(c.Operation),
		Kind:      metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind},
		Namespace: c.Object.GetNamespace(), Name: c.Object.GetName(),
		OldObject: runtime.RawExtension{Raw: marshalled(t, c.Old)},
	}
	if r.Operation != admissionv1.Delete {
		object := c.Object.DeepCopy()
		created := metav1.NewTime(cases.Now)
		if c.Old != nil {
			created = c.Old.GetCreationTimestamp()
		}
		object.SetCreationTimestamp(created)
		r.Object.Raw = marshalled(t, object)
	}
	return r
}

// evaluate returns the guard's verdict on a request.
func (d *testServer) evaluate(t *testing.T, r *admissionv1.AdmissionRequest) api.Verdict {
	t.Helper()
	v, _ := d.opts.Store.View()
	asked, err := decodeChange(v, r, cases.Now)
	require.NoError(t, err)
	j, err := d.opts.Guard.Evaluate(t.Context(), v, asked, nil)
	require.NoError(t, err)
	return j.Verdict(guard.EnforceDeny)
}

// verdict sends a change to the webhook, compares all that the guard returns for
// it, and makes it if it is allowed.
func (d *testServer) verdict(t *testing.T, c *cases.Change) {
	t.Helper()
	r := asRequest(t, c)
	want, got := c.Verdict, d.evaluate(t, r)
	assert.Equal(t, want, cases.Want{
		Allowed:  got.Allowed,
		Reasons:  cases.Of(got.Reasons, c.Verdict.Reasons),
		Warnings: cases.Of(got.Warnings, c.Verdict.Warnings),
		Changes:  got.Changes,
	})

	a := d.validated(t, r)
	assert.Equal(t, c.Verdict.Allowed, a.Allowed)
	assert.Len(t, a.Warnings, cases.Shown(c.Verdict.Warnings))
	assertWhole(t, a.Warnings)
	if a.Allowed {
		d.made(t, c)
		return
	}
	lines := strings.Split(a.Result.Message, "\n")
	require.Len(t, lines, len(c.Verdict.Reasons))
	for i, want := range c.Verdict.Reasons {
		assert.Equal(t, string(want.Code)+": "+got.Reasons[i].Message, lines[i])
		for _, part := range want.Says {
			assert.Contains(t, lines[i], part)
		}
	}
	assert.True(t, d.mutated(t, r).Allowed)
}

// assertWhole asserts that warnings are passed on by the API server, and that no name in them
// was shortened for that.
func assertWhole(t *testing.T, warnings []string) {
	t.Helper()
	for _, w := range warnings {
		assert.LessOrEqual(t, utf8.RuneCountInString(w), warningLength)
		assert.NotContains(t, w, "…")
	}
}

// made makes a change that was allowed.
func (d *testServer) made(t *testing.T, c *cases.Change) {
	t.Helper()
	if c.Operation == "DELETE" {
		gvk := c.Object.GroupVersionKind()
		d.opts.Store.Apply(snapshot.Delete(api.Ref{Group: gvk.Group, Kind: gvk.Kind, Namespace: c.Object.GetNamespace(), Name: c.Object.GetName()}))
		return
	}
	object := c.Object.DeepCopy()
	if c.Old != nil {
		object.SetCreationTimestamp(c.Old.GetCreationTimestamp())
	} else {
		object.SetCreationTimestamp(metav1.NewTime(cases.Now))
	}
	d.put(t, object)
}
