package webhook

import (
	"bytes"
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

// reviewError tells that a request holds no review that could be evaluated.
type reviewError struct {
	status int
	reason string
	// uid of the review, where as much of it could be read: it can be answered.
	uid types.UID
}

func (e *reviewError) Error() string { return e.reason }

// code is the reason of a denial for it.
func (e *reviewError) code() string {
	if e.status == http.StatusRequestEntityTooLarge {
		return string(api.ReasonTooMuch)
	}
	return string(api.ReasonInvalid)
}

func newReviewError(status int, format string, args ...any) error {
	return &reviewError{status: status, reason: fmt.Sprintf(format, args...)}
}

// readReview reads the review of a request of at most limit bytes. Its errors
// are *reviewError.
func readReview(r *http.Request, limit int64) (*admissionv1.AdmissionRequest, error) {
	if r.Method != http.MethodPost {
		return nil, newReviewError(http.StatusMethodNotAllowed, "%s is not supported: send an AdmissionReview by POST", r.Method)
	}
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return nil, newReviewError(http.StatusUnsupportedMediaType, "content type %q is not supported: send application/json", r.Header.Get("Content-Type"))
	}
	body := bodyPool.Get().(*bytes.Buffer) //nolint:forcetypeassert // nothing else is in there
	defer releaseBody(body)
	body.Grow(int(min(max(r.ContentLength, 0), limit)) + bytes.MinRead)
	if err := readBody(body, r.Body, limit); err != nil {
		return nil, withUID(err, body.Bytes())
	}
	review, err := decode.As[admissionv1.AdmissionReview](body.Bytes())
	if err != nil {
		return nil, withUID(newReviewError(http.StatusBadRequest, "the body is no AdmissionReview: %v", err), body.Bytes())
	}
	if got := review.GroupVersionKind(); got != admissionv1.SchemeGroupVersion.WithKind("AdmissionReview") {
		return nil, newReviewError(http.StatusBadRequest, "%s is not supported: send an AdmissionReview of %s", got, admissionv1.SchemeGroupVersion)
	}
	if review.Request == nil || review.Request.UID == "" {
		return nil, newReviewError(http.StatusBadRequest, "the AdmissionReview has no request with a uid")
	}
	return review.Request, nil
}

// answerable adds to a reviewError the uid that the head of the body has.
func withUID(err error, body []byte) error {
	uid, failed := uidOfReview(bytes.NewReader(body))
	if b, ok := errors.AsType[*reviewError](err); ok && failed == nil {
		b.uid = uid
	}
	return err
}

// bodies are used again: a review is decoded into values of its own. Those that
// grew beyond what reviews mostly have are left to the collector.
var bodyPool = sync.Pool{New: func() any { return new(bytes.Buffer) }}

const maxPooledBody = 64 << 10

func releaseBody(body *bytes.Buffer) {
	if body.Cap() <= maxPooledBody {
		body.Reset()
		bodyPool.Put(body)
	}
}

func readBody(into *bytes.Buffer, body io.Reader, limit int64) error {
	n, err := into.ReadFrom(http.MaxBytesReader(nil, io.NopCloser(body), limit))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return newReviewError(http.StatusRequestEntityTooLarge, "the review is larger than %d bytes", limit)
	case err != nil:
		return newReviewError(http.StatusBadRequest, "the review broke off: %v", err)
	case n == 0:
		return newReviewError(http.StatusBadRequest, "the body is empty: send an AdmissionReview")
	}
	return nil
}
