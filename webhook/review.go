package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/types"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/decode"
)

// reviewError is returned for a request without a valid review.
type reviewError struct {
	status int
	reason string
	// uid of the review, if it could be read: then the review can be answered.
	uid types.UID
}

func (e *reviewError) Error() string { return e.reason }

// code returns the reason code of a denial for the error.
func (e *reviewError) code() string {
	if e.status == http.StatusRequestEntityTooLarge {
		return string(api.ReasonTooMuch)
	}
	return string(api.ReasonInvalid)
}

func newReviewError(status int, format string, args ...any) *reviewError {
	return &reviewError{status: status, reason: fmt.Sprintf(format, args...)}
}

// readReview reads the review of a request of at most limit bytes into a buffer.
func readReview(r *http.Request, limit int64, body *bytes.Buffer) (*admissionv1.AdmissionRequest, *reviewError) {
	if r.Method != http.MethodPost {
		return nil, newReviewError(http.StatusMethodNotAllowed, "method %s not allowed: must be POST", r.Method)
	}
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return nil, newReviewError(http.StatusUnsupportedMediaType, "unsupported content type %q: must be application/json", r.Header.Get("Content-Type"))
	}
	body.Grow(int(min(max(r.ContentLength, 0), limit)) + bytes.MinRead)
	if err := readBody(body, r.Body, limit); err != nil {
		return nil, err.withUID(body.Bytes())
	}
	return decodeReview(body.Bytes())
}

func decodeReview(body []byte) (*admissionv1.AdmissionRequest, *reviewError) {
	review, err := decode.As[admissionv1.AdmissionReview](body)
	if err != nil {
		return nil, newReviewError(http.StatusBadRequest, "invalid AdmissionReview: %v", err).withUID(body)
	}
	if got := review.GroupVersionKind(); got != admissionv1.SchemeGroupVersion.WithKind("AdmissionReview") {
		return nil, newReviewError(http.StatusBadRequest, "unsupported object %s: must be an AdmissionReview of %s", got, admissionv1.SchemeGroupVersion)
	}
	if review.Request == nil || review.Request.UID == "" {
		return nil, newReviewError(http.StatusBadRequest, "request.uid: Required value")
	}
	return review.Request, nil
}

// withUID adds the uid at the start of the body.
func (e *reviewError) withUID(body []byte) *reviewError {
	e.uid = uidOfReview(bytes.NewReader(body))
	return e
}

// bodyPool reuses buffers: the decoded review does not refer to them. Buffers larger
// than maxPooledBody, which most reviews do not need, are not pooled.
var bodyPool = sync.Pool{New: func() any { return new(bytes.Buffer) }}

const maxPooledBody = 64 << 10

func newBody() *bytes.Buffer {
	return bodyPool.Get().(*bytes.Buffer) //nolint:forcetypeassert // the pool holds nothing else
}

func releaseBody(body *bytes.Buffer) {
	if body.Cap() <= maxPooledBody {
		body.Reset()
		bodyPool.Put(body)
	}
}

func readBody(into *bytes.Buffer, body io.Reader, limit int64) *reviewError {
	n, err := into.ReadFrom(http.MaxBytesReader(nil, io.NopCloser(body), limit))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return newReviewError(http.StatusRequestEntityTooLarge, "request body too large: the limit is %d bytes", limit)
	case err != nil:
		return newReviewError(http.StatusBadRequest, "cannot read request body: %v", err)
	case n == 0:
		return newReviewError(http.StatusBadRequest, "request body is empty: must be an AdmissionReview")
	}
	return nil
}

// maxUIDOffset is the number of bytes of a review in which its uid has to be: the API
// server writes it first.
const maxUIDOffset = 4 << 10

// uidOfReview reads a review up to its uid, "" if it has none.
func uidOfReview(body io.Reader) (uid types.UID) {
	d := json.NewDecoder(io.LimitReader(body, maxUIDOffset))
	if seekField(d, "request") != nil || seekField(d, "uid") != nil || d.Decode(&uid) != nil {
		return ""
	}
	return uid
}

// seekField reads an object up to the value of a field.
func seekField(d *json.Decoder, name string) error {
	if _, err := d.Token(); err != nil { // the brace; after anything else the next token is not a name
		return err
	}
	for {
		key, err := d.Token()
		if err != nil || key == name {
			return err
		}
		var skipped json.RawMessage
		if err := d.Decode(&skipped); err != nil {
			return err
		}
	}
}
