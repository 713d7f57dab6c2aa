package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/logbuffer"
)

// uid is that of every request here.
const uid = types.UID("7f0c9f4e-1d4a-4c55-8a0e-3f5e7c1b2a90")

// noon is the time of every request here.
var testTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// cluster is a gateway with a route of two rules.
const cluster = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: demo}
spec: {controllerName: example.com/gateway-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: infra, name: edge}
spec:
  gatewayClassName: demo
  listeners:
  - {name: http, protocol: HTTP, port: 80, allowedRoutes: {namespaces: {from: All}}}
---
` + route

const route = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: app, name: toystore}
spec:
  parentRefs: [{namespace: infra, name: edge}]
  rules:
  - {name: toys, matches: [{path: {type: PathPrefix, value: /toys}}]}
  - {name: admin, matches: [{path: {type: PathPrefix, value: /admin}}]}
`

// gatewayAuth overrides sso on everything behind the gateway.
const gatewayAuth = `
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {namespace: infra, name: gw-auth, creationTimestamp: "2026-01-01T00:00:00Z"}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}
  overrides: {strategy: merge, rules: {authentication: {sso: {issuer: ours}}}}
`

// gatewayLimits allows no login limit over 50.
const gatewayLimits = `
apiVersion: kuadrant.io/v1
kind: RateLimitPolicy
metadata: {namespace: infra, name: gw-limits, creationTimestamp: "2026-01-01T00:00:00Z"}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}
  overrides:
    strategy: merge
    when: spec.limits.login.rates.exists(r, r.limit > 50)
    limits: {login: {rates: [{limit: 50, window: 10s}]}}
`

// routeAuth is an AuthPolicy on the route with the given rest of its spec.
func routeAuth(spec string) string {
	return `
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {namespace: app, name: toystore-auth}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: toystore}
` + indented(spec)
}

// routeLimits is a RateLimitPolicy on the route with a login limit.
func routeLimits(login int) string {
	return fmt.Sprintf(`
apiVersion: kuadrant.io/v1
kind: RateLimitPolicy
metadata: {namespace: app, name: toystore-limits}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: toystore}
  limits: {login: {rates: [{limit: %d, window: 10s}]}}
`, login)
}

func indented(spec string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ") + "\n"
}

// testServer is a Server with its metrics and its log.
type testServer struct {
	*Server
	registry *prometheus.Registry
	log      *logbuffer.Buffer
}

// newTestServer returns a server that holds the objects of some manifests.
func newTestServer(t *testing.T, o Options, manifests ...string) *testServer {
	t.Helper()
	d := &testServer{registry: prometheus.NewRegistry(), log: &logbuffer.Buffer{}}
	if o.Store == nil {
		o.Store = snapshot.New()
	}
	if o.Guard == nil {
		o.Guard = &guard.Guard{}
	}
	o.Guard.Engine = effective.NewEngine()
	o.Metrics, o.Log, o.Refresh = NewMetrics(d.registry), d.log.Logger(), true
	o.Now = func() time.Time { return testTime }
	kinds := policykind.BuiltinKinds()
	for _, k := range append(kinds, timeouts(t)) {
		o.Store.AddKind(k)
		o.Store.KindListed(k.Ref())
	}
	for _, m := range manifests {
		addObjects(t, o.Store, m)
	}
	d.Server = New(o)
	return d
}

// timeouts is a direct kind, which takes one policy on a target.
func timeouts(t *testing.T) *policykind.Kind {
	t.Helper()
	k, err := policykind.Compile(api.PolicyProfileSpec{
		Group: "policies.example.com", Kind: "TimeoutPolicy", Class: api.Direct,
		Targets: api.ProfileTargets{Fields: []string{"targetRef"}},
	}, policykind.Cluster)
	require.NoError(t, err)
	return k
}

func addObjects(t *testing.T, s *snapshot.Store, manifests string) {
	t.Helper()
	v, _ := s.View()
	for doc := range strings.SplitSeq(manifests, "\n---\n") {
		data := toJSON(t, doc)
		ref := kindOfJSON(t, data)
		o, err := snapshot.Decode(ref, v.Kind(ref), data, 0)
		require.NoError(t, err)
		s.Apply(snapshot.Put(o))
	}
}

// toJSON turns YAML into the JSON that an API server sends: "" into nothing.
func toJSON(t *testing.T, manifest string) []byte {
	t.Helper()
	if manifest == "" {
		return nil
	}
	data, err := yaml.YAMLToJSON([]byte(manifest))
	require.NoError(t, err)
	return data
}

func kindOfJSON(t *testing.T, data []byte) api.PolicyKind {
	t.Helper()
	var meta metav1.TypeMeta
	require.NoError(t, json.Unmarshal(data, &meta))
	group, _, _ := strings.Cut(meta.APIVersion, "/")
	if !strings.Contains(meta.APIVersion, "/") {
		group = ""
	}
	return api.PolicyKind{Group: group, Kind: meta.Kind}
}

// request is the request of a write, as an API server sends it.
func request(t *testing.T, op admissionv1.Operation, before, after string) *admissionv1.AdmissionRequest {
	t.Helper()
	r := &admissionv1.AdmissionRequest{
		UID: uid, Operation: op,
		OldObject: runtime.RawExtension{Raw: toJSON(t, before)},
		Object:    runtime.RawExtension{Raw: toJSON(t, after)},
	}
	for _, data := range [][]byte{r.OldObject.Raw, r.Object.Raw} {
		if len(data) == 0 {
			continue
		}
		var u unstructured.Unstructured
		require.NoError(t, json.Unmarshal(data, &u.Object))
		gvk := u.GroupVersionKind()
		r.Kind = metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}
		r.Namespace, r.Name = u.GetNamespace(), u.GetName()
	}
	return r
}

func create(t *testing.T, object string) *admissionv1.AdmissionRequest {
	t.Helper()
	return request(t, admissionv1.Create, "", object)
}

func update(t *testing.T, before, after string) *admissionv1.AdmissionRequest {
	t.Helper()
	return request(t, admissionv1.Update, before, after)
}

func remove(t *testing.T, object string) *admissionv1.AdmissionRequest {
	t.Helper()
	return request(t, admissionv1.Delete, object, "")
}

func review(t *testing.T, r *admissionv1.AdmissionRequest) []byte {
	t.Helper()
	data, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request:  r,
	})
	require.NoError(t, err)
	return data
}

// post sends a body to a path.
func (d *testServer) post(t *testing.T, path string, body []byte) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	d.Handler().ServeHTTP(w, r)
	return w
}

// send sends a request to a path and returns the response.
func (d *testServer) send(t *testing.T, path string, r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	t.Helper()
	return responseOf(t, d.post(t, path, review(t, r)))
}

func responseOf(t *testing.T, w *httptest.ResponseRecorder) *admissionv1.AdmissionResponse {
	t.Helper()
	require.Equal(t, http.StatusOK, w.Code, w.Body)
	var review admissionv1.AdmissionReview
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &review))
	require.Equal(t, metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, review.TypeMeta)
	require.NotNil(t, review.Response)
	require.Equal(t, uid, review.Response.UID)
	return review.Response
}

// validated sends a request to the validating webhook.
func (d *testServer) validated(t *testing.T, r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	t.Helper()
	return d.send(t, PathValidate, r)
}

// mutated sends a request to the mutating webhook.
func (d *testServer) mutated(t *testing.T, r *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	t.Helper()
	return d.send(t, PathMutate, r)
}

// assertNames asserts that a message names objects, fields and values.
func assertNames(t *testing.T, message string, names []string) {
	t.Helper()
	for _, name := range names {
		assert.Contains(t, message, name)
	}
}

// said is the message of a denial; the test fails if it is none.
func said(t *testing.T, a *admissionv1.AdmissionResponse) string {
	t.Helper()
	require.False(t, a.Allowed)
	require.NotNil(t, a.Result)
	require.Equal(t, metav1.StatusFailure, a.Result.Status)
	return a.Result.Message
}
