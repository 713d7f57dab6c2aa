package webhook

import (
	"bytes"
	"cmp"
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
	"overrule.dev/overrule/test/tables"
)

func TestInvalidReview(t *testing.T) {
	for name, c := range tables.Read[map[string]struct {
		Method, ContentType, Body, Says string
		Status                          int
	}](t, "testdata/tables/bad-requests.yaml") {
		for _, path := range []string{PathValidate, PathMutate} {
			t.Run(name+" at "+path, func(t *testing.T) {
				d := newTestServer(t, Options{BodyLimit: 128}, cluster)
				method, contentType := cmp.Or(c.Method, http.MethodPost), cmp.Or(c.ContentType, "application/json")
				r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(c.Body))
				if contentType != "-" {
					r.Header.Set("Content-Type", contentType)
				}
				w := httptest.NewRecorder()
				d.Handler().ServeHTTP(w, r)

				assert.Equal(t, c.Status, w.Code)
				assert.Contains(t, w.Body.String(), c.Says)
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
