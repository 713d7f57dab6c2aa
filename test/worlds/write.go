package worlds

import (
	"cmp"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Write is a write of one object. Before is nil on a create, After on a delete.
type Write struct{ Before, After Object }

func (w Write) any() Object {
	if w.After != nil {
		return w.After
	}
	return w.Before
}

// Ref returns the reference of the written object.
func (w Write) Ref() api.Ref { return RefOf(w.any()) }

// UID returns the uid of the written object.
func (w Write) UID() types.UID {
	uid, _ := Meta(w.any())["uid"].(string)
	return types.UID(uid)
}

// Back returns the write that reverts this one.
func (w Write) Back() Write { return Write{Before: w.After, After: w.Before} }

// edited returns the write of an edit of an object's spec; object returns another copy
// each time.
func edited(object func() Object, edit func(spec Object)) Write {
	w := Write{Before: object(), After: object()}
	meta := Meta(w.After)
	meta["generation"], meta["resourceVersion"] = 2, meta["resourceVersion"].(string)+"0" // another state
	edit(Spec(w.After))
	return w
}

// RouteWrite returns a write of the i-th route: another first hostname on the
// same listeners. The route is the large one, which the caller must put into the
// store before.
func (s Size) RouteWrite(i int) Write {
	return edited(func() Object { return s.LargeRoute(i) }, func(spec Object) { Rename(spec, "new-") })
}

// Rename puts a prefix before the first hostname of a route.
func Rename(spec Object, prefix string) {
	hostnames := spec["hostnames"].([]any)
	hostnames[0] = prefix + hostnames[0].(string)
}

// RoutePolicyWrite returns a write of the j-th of the routes' policies: another
// value of one rule of its own.
func (s Size) RoutePolicyWrite(j int) Write {
	return edited(func() Object { return s.RoutePolicy(j) }, func(spec Object) {
		if limited(j) {
			spec["limits"].(Object)["writes"].(Object)["rates"] = []any{Object{"limit": 6, "window": "1m"}}
			return
		}
		spec["rules"].(Object)["authentication"].(Object)["partners"] = parse(`{"jwt":{"issuerUrl":"https://partners.example.com/new"}}`)
	})
}

// GatewayPolicyWrite returns a write of the i-th of the gateways' policies:
// another value of a rule, which changes every path of the policy.
func (s Size) GatewayPolicyWrite(i int) Write {
	return edited(func() Object { return s.GatewayPolicy(i) }, func(spec Object) {
		for _, name := range []string{"defaults", "overrides"} {
			block, _ := spec[name].(Object)
			if limits, ok := block["limits"].(Object); ok {
				limits["requests"].(Object)["rates"] = []any{Object{"limit": 40, "window": "10s"}}
			} else if rules, ok := block["rules"].(Object); ok {
				for name := range rules["authorization"].(Object) {
					rules["authorization"].(Object)[name] = noRobots("crawler")
				}
			}
		}
	})
}

// Review returns the AdmissionReview of the write as JSON, as the API server
// sends it for kubectl apply.
func (w Write) Review(tb testing.TB, uid types.UID) []byte {
	tb.Helper()
	ref := w.Ref()
	kind := metav1.GroupVersionKind{Group: ref.Group, Version: "v1", Kind: ref.Kind}
	resource := metav1.GroupVersionResource{Group: ref.Group, Version: "v1", Resource: Resource(ref.PolicyKind())}
	operation, options := admissionv1.Update, "UpdateOptions"
	if w.Before == nil {
		operation, options = admissionv1.Create, "CreateOptions"
	} else if w.After == nil {
		operation, options = admissionv1.Delete, "DeleteOptions"
	}
	out, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: cmp.Or(uid, "2b3ac2f1-7e53-4a3e-9d3f-0d6d0a7b9c11"), Kind: kind, Resource: resource, RequestKind: &kind, RequestResource: &resource,
			Namespace: ref.Namespace, Name: ref.Name, Operation: operation,
			UserInfo: authenticationv1.UserInfo{Username: "jane", Groups: []string{"developers", "system:authenticated"}},
			Object:   raw(tb, w.After), OldObject: raw(tb, w.Before), DryRun: new(bool),
			Options: runtime.RawExtension{
				Raw: fmt.Appendf(nil, `{"kind":%q,"apiVersion":"meta.k8s.io/v1","fieldManager":"kubectl-client-side-apply"}`, options),
			},
		},
	})
	require.NoError(tb, err)
	return out
}

// raw returns an object as JSON, or nothing if there is none.
func raw(tb testing.TB, o Object) runtime.RawExtension {
	tb.Helper()
	if o == nil {
		return runtime.RawExtension{}
	}
	data, err := json.Marshal(o)
	require.NoError(tb, err)
	return runtime.RawExtension{Raw: data}
}
