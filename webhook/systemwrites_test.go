package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/internal/webhookconfig"
)

// held is a route that is being deleted, with this in its metadata beside.
func held(metadata string) string {
	return `{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, spec: {hostnames: [a.example]}, ` +
		`metadata: {name: r, namespace: app, deletionTimestamp: "2026-03-01T00:00:00Z"` + metadata + `}}`
}

// ownedBy are so many owners, from the first of their names on.
func ownedBy(first, n int) string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, name: o%[1]d, uid: u%[1]d}", first+i)
	}
	return ", ownerReferences: [" + strings.Join(out, ",") + "]"
}

func as(user string, r *admissionv1.AdmissionRequest) *admissionv1.AdmissionRequest {
	r.UserInfo.Username = user
	return r
}

// answering sends a request to an endpoint that always returns the same response.
func (d *testServer) answering(t *testing.T, r *admissionv1.AdmissionRequest, a response) *admissionv1.AdmissionResponse {
	t.Helper()
	j := endpoint{webhookValidate, spanEvaluate, func(context.Context, *call, *snapshot.View) response { return a }, d.denyFailed, d.denyOverloaded}
	q := httptest.NewRequestWithContext(t.Context(), http.MethodPost, PathValidate, strings.NewReader(string(review(t, r))))
	q.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	d.handler(j, false).ServeHTTP(w, q)
	return responseOf(t, w)
}

// Users as whom controllers delete.
const (
	namespaceController = "system:serviceaccount:kube-system:namespace-controller"
	garbageCollector    = "system:serviceaccount:kube-system:generic-garbage-collector"
	controllerManager   = "system:kube-controller-manager"
)

const finalizer = ", finalizers: [a/b]"

// A system write is never denied because it was not evaluated, and
// nothing else passes by that.
func TestSystemWriteIsNotDeniedUnevaluated(t *testing.T) {
	alive := strings.Replace(held(finalizer), `deletionTimestamp: "2026-03-01T00:00:00Z"`, "generation: 1", 1)
	owned, crowd := held(ownedBy(0, 1)), held(ownedBy(0, 700)+finalizer)
	const edit, deletion = "the object is being deleted and nothing else changes", "garbage collection or namespace deletion"
	for name, c := range map[string]struct {
		r   *admissionv1.AdmissionRequest
		why string
	}{
		"a finalizer goes":                      {update(t, held(finalizer), held("")), edit},
		"a status comes with it":                {update(t, held(finalizer), strings.Replace(held(""), "spec:", "status: {parents: []}, spec:", 1)), edit},
		"of very many owners":                   {update(t, crowd, held(ownedBy(0, 700))), edit},
		"an owner goes with it":                 {update(t, held(ownedBy(0, 2)+finalizer), held(ownedBy(1, 1))), edit},
		"an owner is not waited for any more":   {update(t, owned, strings.Replace(owned, "uid: u0", "uid: u0, blockOwnerDeletion: false", 1)), edit},
		"an owner comes":                        {update(t, owned, held(ownedBy(0, 2))), ""},
		"the first owner comes":                 {update(t, held(finalizer), owned), ""},
		"one of very many owners goes":          {update(t, crowd, held(ownedBy(0, 699))), ""},
		"the spec changes":                      {update(t, held(finalizer), strings.Replace(held(""), "a.example", "b.example", 1)), ""},
		"a field comes":                         {update(t, held(finalizer), strings.Replace(held(""), "spec:", "more: 1, spec:", 1)), ""},
		"a field goes":                          {update(t, strings.Replace(held(""), "spec:", "more: 1, spec:", 1), held("")), ""},
		"a label changes":                       {update(t, held(finalizer), held(", labels: {a: b}")), ""},
		"an annotation, that may rank, changes": {update(t, held(", annotations: {a: b}"), held("")), ""},
		"it is not being deleted":               {update(t, alive, alive), ""},
		"it says so only now":                   {update(t, alive, held("")), ""},
		"it is created":                         {create(t, held("")), ""},
		"the namespace controller deletes":      {as(namespaceController, remove(t, held(""))), deletion},
		"the garbage collector deletes":         {as(garbageCollector, remove(t, owned)), deletion},
		"the garbage collector, but no owner":   {as(garbageCollector, remove(t, held(""))), ""},
		"the one user of controllers deletes":   {as(controllerManager, remove(t, held(""))), deletion},
		"a user deletes":                        {as("dev", remove(t, owned)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := newTestServer(t, Options{})
			for _, denial := range []response{d.denyFailed("TooMuch", "TooMuch: it takes long"), d.denyOverloaded(), d.denyFailed(api.DenialPanic, "a fault")} {
				got := d.answering(t, c.r, denial)
				require.Equal(t, c.why != "", got.Allowed, denial.reason)
				if !got.Allowed {
					assert.Equal(t, denial.message, got.Result.Message)
					continue
				}
				said := denial.reason + ": " + strings.TrimPrefix(denial.message, "TooMuch: ")
				assert.Nil(t, got.Result)
				assert.Equal(t, said+" (not denied: "+c.why+")", got.AuditAnnotations["audit"])
				assert.NotContains(t, got.AuditAnnotations, "denied")
			}
		})
	}
}

// A deletion that was evaluated, as in a namespace that stays, keeps its denial. One that
// was too much to evaluate was not.
func TestEvaluatedSystemDeleteKeepsDenial(t *testing.T) {
	d := newTestServer(t, Options{})
	r := as(namespaceController, remove(t, held("")))
	evaluated := func(code api.ReasonCode) response {
		a := deny(string(code), string(code)+": no")
		a.evaluated = true
		return a
	}
	assert.False(t, d.answering(t, r, evaluated(api.ReasonOverrideRemoved)).Allowed)
	assert.True(t, d.answering(t, r, evaluated(api.ReasonTooMuch)).Allowed)
}

// In a roll-out it is not counted among what would be denied.
func TestAllowedSystemWriteHasNoWouldDeny(t *testing.T) {
	for _, e := range []guard.Enforcement{guard.EnforceWarn, guard.EnforceAudit} {
		d := newTestServer(t, Options{Enforcement: e})
		got := d.answering(t, update(t, held(finalizer), held("")), d.denyFailed("TooMuch", "TooMuch: it takes long"))
		assert.True(t, got.Allowed)
		assert.Empty(t, got.Warnings)
		assert.Len(t, got.AuditAnnotations, 2, "audit and evaluated-on: %v", got.AuditAnnotations)
	}
}

func TestUnreadableObjectIsNotASystemWrite(t *testing.T) {
	object := toJSON(t, held(", ownerReferences: x"))
	for _, data := range [][]byte{nil, []byte("{"), []byte(`{"metadata":1}`), object} {
		var before json.RawMessage = toJSON(t, held(ownedBy(0, 1)))
		r := update(t, held(""), held(""))
		r.OldObject.Raw, r.Object.Raw = before, data
		assert.Empty(t, webhookconfig.SystemWrite(r))
	}
}
