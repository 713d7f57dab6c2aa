package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
)

// annotationPatches is the one operation of a patch.
type annotationPatches struct{ op, path, value string }

func patched(t *testing.T, a *admissionv1.AdmissionResponse) annotationPatches {
	t.Helper()
	require.True(t, a.Allowed)
	require.NotNil(t, a.PatchType)
	require.Equal(t, admissionv1.PatchTypeJSONPatch, *a.PatchType)
	var ops []patchOperation
	require.NoError(t, json.Unmarshal(a.Patch, &ops))
	require.Len(t, ops, 1)
	p := annotationPatches{op: ops[0].Op, path: ops[0].Path}
	switch v := ops[0].Value.(type) {
	case string:
		p.value = v
	case map[string]any:
		require.Len(t, v, 1)
		for name, text := range v {
			p.path += "/" + name
			p.value = text.(string)
		}
	}
	return p
}

const (
	outcomeText = `{"state":"PartiallyEnforced","paths":{"total":2,"enforced":0,"partiallyEnforced":2,"overridden":0,"inactive":0},` +
		`"lost":[{"rule":"rules.authentication.sso","to":"AuthPolicy infra/gw-auth","paths":2}]}`
	ssoAndKey = "rules: {authentication: {sso: {issuer: mine}, key: {}}}"
)

func TestAnnotationPatch(t *testing.T) {
	d := newTestServer(t, Options{}, cluster, gatewayAuth)
	policy := routeAuth(ssoAndKey)
	for name, c := range map[string]struct {
		object string
		want   annotationPatches
	}{
		"without annotations it makes the map": {
			policy, annotationPatches{"add", "/metadata/annotations/" + api.AnnotationOutcome, outcomeText},
		},
		"beside another annotation": {
			annotated(policy, "a", "b"), annotationPatches{"add", "/metadata/annotations/overrule.dev~1outcome", outcomeText},
		},
		"in place of what the writer claims": {
			annotated(policy, api.AnnotationOutcome, "Enforced!"), annotationPatches{"add", "/metadata/annotations/overrule.dev~1outcome", outcomeText},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := d.mutated(t, create(t, c.object))
			assert.Equal(t, c.want, patched(t, got))
			assert.Empty(t, got.Warnings, "warnings come from validating alone")
			assert.JSONEq(t, outcomeText, apply(t, c.object, got.Patch)[api.AnnotationOutcome])
		})
	}
	t.Run("what is there already needs no patch", func(t *testing.T) {
		assert.Nil(t, d.mutated(t, create(t, annotated(policy, api.AnnotationOutcome, outcomeText))).Patch)
	})
}

// annotated puts an annotation on a manifest.
func annotated(manifest, name, value string) string {
	quoted, _ := json.Marshal(value)
	return strings.Replace(manifest, "metadata: {", fmt.Sprintf("metadata: {annotations: {%s: %s}, ", name, quoted), 1)
}

// labelled puts a label on a manifest.
func labelled(manifest string) string {
	return strings.Replace(manifest, "metadata: {", "metadata: {labels: {team: toys}, ", 1)
}

// apply applies a patch and returns the annotations.
func apply(t *testing.T, manifest string, patch []byte) map[string]string {
	t.Helper()
	decoded, err := jsonpatch.DecodePatch(patch)
	require.NoError(t, err)
	after, err := decoded.Apply(toJSON(t, manifest))
	require.NoError(t, err)
	object, err := mutablePartsOf(after)
	require.NoError(t, err)
	return object.Annotations
}

func TestRouteAnnotation(t *testing.T) {
	d := newTestServer(t, Options{}, cluster, gatewayAuth, routeAuth(ssoAndKey))
	got := patched(t, d.mutated(t, create(t, route)))
	assert.Equal(t, "/metadata/annotations/"+api.AnnotationEffectivePolicy, got.path)
	assert.JSONEq(t, `{"hash": "`+hashIn(t, got.value)+`", "policies": {"AuthPolicy.kuadrant.io": [{
		"paths": ["infra/edge#http toys", "infra/edge#http admin"],
		"rules": {"rules.authentication.key": "app/toystore-auth", "rules.authentication.sso": "infra/gw-auth"}}]}}`, got.value)
}

func TestRouteAnnotationPerRule(t *testing.T) {
	onAdmin := strings.Replace(routeAuth("rules: {authentication: {staff: {}}}"), "name: toystore}", "name: toystore, sectionName: admin}", 1)
	d := newTestServer(t, Options{}, cluster, gatewayAuth, onAdmin)
	got := patched(t, d.mutated(t, create(t, route))).value
	assert.JSONEq(t, `{"hash": "`+hashIn(t, got)+`", "policies": {"AuthPolicy.kuadrant.io": [
		{"paths": ["infra/edge#http toys"], "rules": {"rules.authentication.sso": "infra/gw-auth"}},
		{"paths": ["infra/edge#http admin"], "rules": {"rules.authentication.sso": "infra/gw-auth", "rules.authentication.staff": "app/toystore-auth"}}]}}`, got)
}

func hashIn(t *testing.T, text string) string {
	t.Helper()
	var hashed struct{ Hash string }
	require.NoError(t, json.Unmarshal([]byte(text), &hashed))
	require.Len(t, hashed.Hash, 16)
	return hashed.Hash
}

func TestAnnotationHash(t *testing.T) {
	hash := func(manifests ...string) string {
		d := newTestServer(t, Options{}, append([]string{cluster}, manifests...)...)
		return hashIn(t, patched(t, d.mutated(t, create(t, route))).value)
	}
	want := hash(gatewayAuth, routeAuth(ssoAndKey))
	assert.Equal(t, want, hash(routeAuth(ssoAndKey), gatewayAuth), "the order of events does not matter")
	assert.Equal(t, want, hash(gatewayAuth, routeAuth("rules: {authentication: {sso: {issuer: another}, key: {}}}")), "nor does what is overridden")
	assert.Equal(t, want, hash(strings.Replace(gatewayAuth, "ours", "theirs", 1), routeAuth(ssoAndKey)), "nor does a value, which the reader may not be allowed to read")
	assert.NotEqual(t, want, hash(routeAuth(ssoAndKey)), "where a rule is from does")
}

func TestAnnotationIsStableAcrossCreate(t *testing.T) {
	for name, object := range map[string]string{
		"a policy": routeAuth(ssoAndKey),
		"a policy that beats itself": routeAuth(
			"rules: {authentication: {key: {}}}\noverrides: {strategy: atomic, rules: {authentication: {other: {}}}}"),
		"a route": route,
	} {
		t.Run(name, func(t *testing.T) {
			d := newTestServer(t, Options{}, cluster, gatewayAuth)
			named := strings.Split(object, "name: ")[1]
			named = named[:strings.IndexAny(named, ",}")]
			unnamed := strings.Replace(object, "name: "+named+"}", "generateName: x-}", 1)
			require.NotEqual(t, object, unnamed)
			complete := strings.Replace(object, "name: "+named+"}",
				"name: "+named+`, uid: 3a0e, resourceVersion: "7", generation: 3, creationTimestamp: "2026-02-28T00:00:00Z"}`, 1)

			want := patched(t, d.mutated(t, create(t, object))).value
			assert.Equal(t, want, patched(t, d.mutated(t, create(t, unnamed))).value)
			assert.Equal(t, want, patched(t, d.mutated(t, update(t, labelled(complete), complete))).value)
			assert.NotContains(t, want, named+`"`)
		})
	}
}

func TestUnchangedUpdateIsNoOp(t *testing.T) {
	policy := routeAuth(ssoAndKey)
	stale := annotated(policy, api.AnnotationOutcome, "stale")
	finalized := strings.Replace(stale, "metadata: {", `metadata: {deletionTimestamp: "2026-03-01T00:00:00Z", finalizers: [a/b], `, 1)
	for name, c := range map[string]struct {
		before, after string
		want          *annotationPatches
	}{
		"nothing changed":                         {before: stale, after: stale},
		"nothing changed, and none was there":     {before: policy, after: policy},
		"another annotation":                      {before: stale, after: strings.Replace(stale, "annotations: {", "annotations: {c: d, ", 1)},
		"the last finalizer goes":                 {before: finalized, after: strings.Replace(finalized, "finalizers: [a/b], ", "", 1)},
		"the writer forged one":                   {before: policy, after: stale, want: &annotationPatches{"add", "/metadata/annotations/overrule.dev~1outcome", outcomeText}},
		"the writer changed it":                   {before: stale, after: annotated(policy, api.AnnotationOutcome, "Enforced!"), want: &annotationPatches{"add", "/metadata/annotations/overrule.dev~1outcome", outcomeText}},
		"the writer dropped it":                   {before: stale, after: annotated(policy, "c", "d"), want: &annotationPatches{"add", "/metadata/annotations/overrule.dev~1outcome", outcomeText}},
		"the writer dropped all annotations":      {before: stale, after: policy, want: &annotationPatches{"add", "/metadata/annotations/overrule.dev/outcome", outcomeText}},
		"the writer says what is true now":        {before: stale, after: annotated(policy, api.AnnotationOutcome, outcomeText)},
		"the writer says nothing in it":           {before: stale, after: annotated(policy, api.AnnotationOutcome, ""), want: &annotationPatches{"add", "/metadata/annotations/overrule.dev~1outcome", outcomeText}},
		"what is true is dropped, and comes back": {before: annotated(policy, api.AnnotationOutcome, outcomeText), after: policy, want: &annotationPatches{"add", "/metadata/annotations/overrule.dev/outcome", outcomeText}},
		"labels changed: it is recomputed":        {before: stale, after: labelled(stale), want: &annotationPatches{"add", "/metadata/annotations/overrule.dev~1outcome", outcomeText}},
		"labels were taken off: the same":         {before: labelled(stale), after: stale, want: &annotationPatches{"add", "/metadata/annotations/overrule.dev~1outcome", outcomeText}},
		"the spec changed: it is recomputed":      {before: annotated(routeAuth("rules: {}"), api.AnnotationOutcome, "stale"), after: stale, want: &annotationPatches{"add", "/metadata/annotations/overrule.dev~1outcome", outcomeText}},
		"the spec changed and the answer did not": {before: annotated(routeAuth("rules: {}"), api.AnnotationOutcome, "stale"), after: annotated(policy, api.AnnotationOutcome, outcomeText)},
	} {
		t.Run(name, func(t *testing.T) {
			d := newTestServer(t, Options{}, cluster, gatewayAuth)
			a := d.mutated(t, update(t, c.before, c.after))
			if c.want == nil {
				assert.Equal(t, &admissionv1.AdmissionResponse{UID: uid, Allowed: true}, a)
				return
			}
			assert.Equal(t, *c.want, patched(t, a))
		})
	}
}

// References of a route, and the content of a policy without spec, decide what the annotation
// says.
func TestAnnotationDependsOnMoreThanTheSpec(t *testing.T) {
	plugin := "apiVersion: configuration.konghq.com/v1\nkind: KongPlugin\nmetadata: {namespace: app, name: limit}\nplugin: rate-limiting\n"
	d := newTestServer(t, Options{}, strings.Replace(cluster, "controllerName: ", "controllerName: konghq.com/", 1), plugin)
	named := annotated(route, "konghq.com/plugins", "limit")
	assert.Contains(t, patched(t, d.mutated(t, update(t, route, named))).value, `"rules":{"rate-limiting":"app/limit"}`)
	assert.Equal(t, annotationPatches{op: "remove", path: "/metadata/annotations/overrule.dev~1effective-policy"},
		patched(t, d.mutated(t, update(t, annotated(named, api.AnnotationEffectivePolicy, "x"), annotated(route, api.AnnotationEffectivePolicy, "x")))))
	stale := annotated(plugin, api.AnnotationOutcome, "stale")
	assert.Contains(t, patched(t, d.mutated(t, update(t, stale, stale+"config: {minute: 5}\n"))).value, `"state":"NoPath"`)
	assert.Nil(t, d.mutated(t, update(t, stale, stale)).Patch)
}

func TestFailedAnnotationIsRestored(t *testing.T) {
	d := newTestServer(t, Options{}, cluster, gatewayAuth)
	v, _ := d.opts.Store.View()
	policy := routeAuth(ssoAndKey)
	stale, forged := annotated(policy, api.AnnotationOutcome, "stale"), annotated(policy, api.AnnotationOutcome, "Enforced!")
	r := update(t, stale, forged)
	c, err := decodeChange(v, r, time.Now())
	require.NoError(t, err)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	ops, err := d.annotationPatch(v, r, c, effective.NewBudget(over, guard.DefaultBudget))
	require.NoError(t, err)
	assert.Equal(t, []patchOperation{{Op: "add", Path: "/metadata/annotations/overrule.dev~1outcome", Value: "stale"}}, ops)

	r = update(t, stale, labelled(forged))
	c, err = decodeChange(v, r, time.Now())
	require.NoError(t, err)
	ops, err = d.annotationPatch(v, r, c, effective.NewBudget(over, guard.DefaultBudget))
	require.NoError(t, err)
	assert.Equal(t, []patchOperation{{Op: "remove", Path: "/metadata/annotations/overrule.dev~1outcome"}}, ops, "what was there is of another object then")
}

func TestAnnotationOfRefresh(t *testing.T) {
	lonely := strings.Replace(route, "name: edge", "name: nothing", 1)
	d := newTestServer(t, Options{}, cluster, gatewayAuth)
	a := d.mutated(t, update(t, annotated(lonely, api.AnnotationEffectivePolicy, "x"), annotated(lonely, api.AnnotationEffectivePolicy, "")))
	assert.Equal(t, annotationPatches{op: "remove", path: "/metadata/annotations/overrule.dev~1effective-policy"}, patched(t, a))
}

// What is not refreshed must not read as the present state.
func TestAnnotationThatIsNotRefreshedIsAboutTheLastWrite(t *testing.T) {
	policy := routeAuth(ssoAndKey)
	optedOut := strings.Replace(policy, "metadata: {", `metadata: {labels: {overrule.dev/refresh: "false"}, `, 1)
	namespace := "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: app, labels: {overrule.dev/refresh: \"false\"}}\n"
	for name, c := range map[string]struct {
		disabled         bool
		manifest, policy string
	}{
		"without --refresh":       {disabled: true, policy: policy},
		"its label opts out":      {policy: optedOut},
		"its namespace opted out": {manifest: namespace, policy: policy},
	} {
		t.Run(name, func(t *testing.T) {
			d := newTestServer(t, Options{}, cluster, gatewayAuth+c.manifest)
			d.opts.Refresh = !c.disabled
			assert.Equal(t, `{"asOf":"last write",`+outcomeText[1:], patched(t, d.mutated(t, create(t, c.policy))).value)
			lonely := strings.Replace(route, "name: edge", "name: nothing", 1)
			assert.Nil(t, d.mutated(t, create(t, lonely)).Patch, "without content there is no annotation")
		})
	}
}

func TestEmptyAnnotationIsRemoved(t *testing.T) {
	d := newTestServer(t, Options{}, cluster, gatewayAuth)
	lonely := strings.Replace(route, "name: edge", "name: nothing", 1)
	a := d.mutated(t, update(t, annotated(route, api.AnnotationEffectivePolicy, "x"), annotated(lonely, api.AnnotationEffectivePolicy, "x")))
	assert.Equal(t, annotationPatches{op: "remove", path: "/metadata/annotations/overrule.dev~1effective-policy"}, patched(t, a))
	assert.Nil(t, d.mutated(t, create(t, lonely)).Patch)
}

func TestNoAnnotationNoPatch(t *testing.T) {
	d := newTestServer(t, Options{}, cluster, gatewayAuth)
	for _, r := range []*admissionv1.AdmissionRequest{
		remove(t, gatewayAuth), // a patch on a DELETE is an InternalError, even under Ignore
		remove(t, route),
		create(t, strings.Split(cluster, "---")[1]),
		create(t, strings.Split(cluster, "---")[0]),
	} {
		assert.Equal(t, &admissionv1.AdmissionResponse{UID: uid, Allowed: true}, d.mutated(t, r))
	}
}

func TestAnnotationOfPolicyWithoutPath(t *testing.T) {
	d := newTestServer(t, Options{}, cluster, gatewayAuth)
	for want, object := range map[string]string{
		"TargetNotFound": homeless(),
		"Invalid":        routeAuth("rules: x"),
		"NoPath":         strings.Replace(routeAuth(ssoAndKey), "name: toystore}", "name: away}", 1),
	} {
		if want == "NoPath" {
			addObjects(t, d.opts.Store, strings.NewReplacer("name: toystore", "name: away", "name: edge", "name: nothing").Replace(route))
		}
		assert.Equal(t, `{"state":"`+want+`","paths":{"total":0,"enforced":0,"partiallyEnforced":0,"overridden":0,"inactive":0}}`,
			patched(t, d.mutated(t, create(t, object))).value)
	}
}

func TestAnnotationSize(t *testing.T) {
	listeners := "listeners: [" + many(60, "{name: l%d, protocol: HTTP, port: 80, allowedRoutes: {namespaces: {from: All}}}") + "]"
	wide := strings.Replace(cluster, "listeners:\n  - {name: http, protocol: HTTP, port: 80, allowedRoutes: {namespaces: {from: All}}}", listeners, 1)
	require.NotEqual(t, cluster, wide)
	rules := "{" + many(2000, "r%d: {}") + "}"

	t.Run("a route on many listeners", func(t *testing.T) {
		d := newTestServer(t, Options{}, wide, gatewayAuth)
		got := patched(t, d.mutated(t, create(t, strings.Replace(route, "rules:", "rules:\n  - name: a-further-one", 1)))).value
		assert.JSONEq(t, `{"hash":"`+hashIn(t, got)+`","counts":{"AuthPolicy.kuadrant.io":{"paths":180,"rules":180}}}`, got)
	})
	t.Run("a route with many rules in force", func(t *testing.T) {
		d := newTestServer(t, Options{}, cluster, gatewayAuth, routeAuth("rules: {authentication: "+rules+"}"))
		got := patched(t, d.mutated(t, create(t, route))).value
		assert.JSONEq(t, `{"hash":"`+hashIn(t, got)+`","counts":{"AuthPolicy.kuadrant.io":{"paths":2,"rules":4002}}}`, got)
	})
	t.Run("a policy that loses many rules", func(t *testing.T) {
		d := newTestServer(t, Options{}, cluster, strings.Replace(gatewayAuth, "{sso: {issuer: ours}}", rules, 1))
		lose := routeAuth("rules: {authentication: {" + many(2000, "r%d: 1") + "}}")
		got := patched(t, d.mutated(t, create(t, lose))).value
		assert.JSONEq(t, `{"hash":"`+hashIn(t, got)+`","state":"Overridden","paths":{"total":2,"enforced":0,"partiallyEnforced":0,"overridden":2,"inactive":0}}`, got)
		assert.Equal(t, got, patched(t, d.mutated(t, create(t, lose))).value)
	})
}

func TestAnnotationIsDeterministic(t *testing.T) {
	answers := make(map[string]bool)
	for range 20 {
		d := newTestServer(t, Options{}, cluster, gatewayAuth, gatewayLimits, routeLimits(20), routeAuth("rules: {authentication: {"+many(30, "r%d: {}")+"}}"))
		answers[string(d.post(t, PathMutate, review(t, create(t, route))).Body.Bytes())] = true
	}
	assert.Len(t, answers, 1)
}

func TestUnreadableMetadataIsNotAnnotated(t *testing.T) {
	d := newTestServer(t, Options{}, cluster)
	v, _ := d.opts.Store.View()
	good, bad := toJSON(t, route), []byte(`{"metadata":{"labels":1},"spec":{}}`)
	after, err := snapshot.Decode(api.PolicyKind{Group: api.GatewayGroup, Kind: gateway.KindHTTPRoute}, nil, good, 0)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		object, oldObject []byte
		want              string
	}{
		"of the object":                 {bad, good, "object.metadata: json: cannot unmarshal number into Go struct field mutableParts.labels of type map[string]string"},
		"of the object as it is stored": {good, bad, "oldObject.metadata: json: cannot unmarshal number into Go struct field mutableParts.labels of type map[string]string"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &admissionv1.AdmissionRequest{
				Operation: admissionv1.Update,
				Object:    runtime.RawExtension{Raw: c.object}, OldObject: runtime.RawExtension{Raw: c.oldObject},
			}
			change := guard.Change{Operation: guard.Update, Before: after, After: after}
			_, err := d.annotationPatch(v, r, change, effective.NewBudget(t.Context(), guard.DefaultBudget))
			assert.EqualError(t, err, c.want)
		})
	}
}
