package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

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

// readReview reads the review of a request of at most limit bytes. The body that it returns
// too is not a part of it.
func readReview(r *http.Request, limit int64) (*admissionv1.AdmissionRequest, []byte, *reviewError) {
	if r.Method != http.MethodPost {
		return nil, nil, newReviewError(http.StatusMethodNotAllowed, "method %s not allowed: must be POST", r.Method)
	}
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return nil, nil, newReviewError(http.StatusUnsupportedMediaType, "unsupported content type %q: must be application/json", r.Header.Get("Content-Type"))
	}
	body, err := readBody(r, limit)
	if err != nil {
		return nil, nil, err.withUID(body)
	}
	review, err := decodeReview(body)
	return review, body, err
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

// readBody returns what it has read also with an error.
func readBody(r *http.Request, limit int64) ([]byte, *reviewError) {
	var body bytes.Buffer
	body.Grow(int(min(max(r.ContentLength, 0), limit)) + bytes.MinRead)
	n, err := body.ReadFrom(http.MaxBytesReader(nil, io.NopCloser(r.Body), limit))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return body.Bytes(), newReviewError(http.StatusRequestEntityTooLarge, "request body too large: the limit is %d bytes", limit)
	case err != nil:
		return body.Bytes(), newReviewError(http.StatusBadRequest, "cannot read request body: %v", err)
	case n == 0:
		return nil, newReviewError(http.StatusBadRequest, "request body is empty: must be an AdmissionReview")
	}
	return body.Bytes(), nil
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
