package webhook

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/guard"
)

// badRequests are requests that hold no review.
var badRequests = map[string]struct {
	method, contentType string
	body                string
	status              int
	says                string
}{
	"a GET": {
		method: http.MethodGet, status: http.StatusMethodNotAllowed,
		says: "method GET not allowed: must be POST",
	},
	"YAML": {
		contentType: "application/yaml", body: "a: 1", status: http.StatusUnsupportedMediaType,
		says: `unsupported content type "application/yaml": must be application/json`,
	},
	"no content type": {
		contentType: "-", body: "{}", status: http.StatusUnsupportedMediaType,
		says: `unsupported content type "": must be application/json`,
	},
	"a content type that cannot be read": {
		contentType: "application/json; =", body: "{}", status: http.StatusUnsupportedMediaType,
		says: `unsupported content type "application/json; =": must be application/json`,
	},
	"an empty body": {
		status: http.StatusBadRequest, says: "request body is empty: must be an AdmissionReview",
	},
	"no JSON": {
		body: "<html>", status: http.StatusBadRequest, says: "invalid AdmissionReview: invalid character '<'",
	},
	"JSON that is cut off": {
		body: `{"apiVersion":"admission.k8s.io/v1","kind":"Admission`, status: http.StatusBadRequest,
		says: "invalid AdmissionReview: unexpected end of JSON input",
	},
	"two reviews in one": {
		body: `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}{}`, status: http.StatusBadRequest,
		says: "invalid AdmissionReview: ",
	},
	"JSON null": {
		body: `null`, status: http.StatusBadRequest, says: "must be an AdmissionReview of admission.k8s.io/v1",
	},
	"a request that is a string": {
		body: `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":"x"}`, status: http.StatusBadRequest,
		says: "invalid AdmissionReview: ",
	},
	"the version v1beta1": {
		body:   `{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":{"uid":"u"}}`,
		status: http.StatusBadRequest,
		says:   "unsupported object admission.k8s.io/v1beta1, Kind=AdmissionReview: must be an AdmissionReview of admission.k8s.io/v1",
	},
	"no request": {
		body: `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, status: http.StatusBadRequest,
		says: "request.uid: Required value",
	},
	"no uid": {
		body:   `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"operation":"CREATE"}}`,
		status: http.StatusBadRequest, says: "request.uid: Required value",
	},
	"names in another case": {
		body:   `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","Request":{"UID":"u"}}`,
		status: http.StatusBadRequest, says: "request.uid: Required value",
	},
	"more than the limit": {
		body: strings.Repeat(" ", 2000), status: http.StatusRequestEntityTooLarge,
		says: "request body too large: the limit is 1024 bytes",
	},
}

func TestInvalidReview(t *testing.T) {
	for name, c := range badRequests {
		for _, path := range []string{PathValidate, PathMutate} {
			t.Run(name+" at "+path, func(t *testing.T) {
				d := newTestServer(t, Options{BodyLimit: 1024}, cluster)
				method, contentType := c.method, c.contentType
				if method == "" {
					method = http.MethodPost
				}
				if contentType == "" {
					contentType = "application/json"
				}
				r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(c.body))
				if contentType != "-" {
					r.Header.Set("Content-Type", contentType)
				}
				w := httptest.NewRecorder()
				d.Handler().ServeHTTP(w, r)

				assert.Equal(t, c.status, w.Code)
				assert.Contains(t, w.Body.String(), c.says)
				assert.NotContains(t, w.Body.String(), `"allowed"`, "no verdict without a review")
			})
		}
	}
}

func TestDeeplyNestedReview(t *testing.T) {
	d := newTestServer(t, Options{}, cluster)
	w := d.post(t, PathValidate, bytes.Repeat([]byte(`{"a":`), DefaultBodyLimit/5-1))
	assert.Equal(t, http.StatusBadRequest, w.Code)
	assert.Contains(t, w.Body.String(), "invalid AdmissionReview: ")
}

func TestReviewOfExactlyTheLimit(t *testing.T) {
	body := review(t, create(t, route))
	d := newTestServer(t, Options{BodyLimit: int64(len(body))}, cluster)
	assert.True(t, responseOf(t, d.post(t, PathValidate, body)).Allowed)

	d = newTestServer(t, Options{BodyLimit: int64(len(body)) - 1}, cluster)
	assert.Contains(t, said(t, responseOf(t, d.post(t, PathValidate, body))), "TooMuch")
}

// An HTTP error would leave what an object holds to failurePolicy, and Ignore would
// let it pass.
func TestInvalidObjectIsDeniedNotHTTPError(t *testing.T) {
	const head = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"` + string(uid) + `","object":`
	deep := strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000) + "}}"
	for name, c := range map[string]struct{ body, reason, says string }{
		"too large":         {head + `"` + strings.Repeat("<", 200_000) + `"}}`, "TooMuch", "100000 bytes"},
		"nested too deeply": {head + deep, "Invalid", "exceeded max depth"},
		"cut off":           {head + `{"a":`, "Invalid", "unexpected end"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newTestServer(t, Options{BodyLimit: 100_000}, cluster)
			a := responseOf(t, d.post(t, PathValidate, []byte(c.body)))
			assert.Equal(t, uid, a.UID)
			assert.Contains(t, said(t, a), c.reason+": ")
			assert.Contains(t, a.Result.Message, c.says)
			assert.Equal(t, unpatchedResponse(), responseOf(t, d.post(t, PathMutate, []byte(c.body))), "validating denies it")

			d = newTestServer(t, Options{BodyLimit: 100_000, Enforcement: guard.EnforceWarn}, cluster)
			a = responseOf(t, d.post(t, PathValidate, []byte(c.body)))
			assert.True(t, a.Allowed)
			assert.Contains(t, a.Warnings[0], "would be denied: ")
		})
	}
}

func TestIncompleteBodyIsBadRequest(t *testing.T) {
	d := newTestServer(t, Options{}, cluster)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, PathValidate,
		io.MultiReader(strings.NewReader("{"), iotest.ErrReader(errors.New("the line is dead"))))
	r.Header.Set("Content-Type", "application/json; charset=utf-8")
	w := httptest.NewRecorder()
	d.Handler().ServeHTTP(w, r)
	require.Equal(t, http.StatusBadRequest, w.Code)
	assert.Equal(t, "cannot read request body: the line is dead\n", w.Body.String())
}

func TestOtherPathsAreNotFound(t *testing.T) {
	d := newTestServer(t, Options{}, cluster)
	assert.Equal(t, http.StatusNotFound, d.post(t, "/", review(t, create(t, route))).Code)
	assert.Equal(t, http.StatusNotFound, d.post(t, "/validate/x", review(t, create(t, route))).Code)
}
