package webhook

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/types"
)

// receive reads a review. A body that trickles in has as long as the call: its
// room is reserved.
func (s *Server) readRequest(ctx context.Context, w http.ResponseWriter, r *http.Request) (*admissionv1.AdmissionRequest, error) {
	if end, ok := ctx.Deadline(); ok {
		setReadDeadline(w, end)
	}
	request, err := readReview(r, s.BodyLimit)
	if err == nil {
		// A deadline that lasted would end the call while it is judged. Where the
		// body has not come it has to last: net/http reads what is left of it.
		setReadDeadline(w, time.Time{})
	}
	return request, err
}

// readUntil sets until when a body may be read; zero is for ever. A writer that
// has no deadlines is no connection.
func setReadDeadline(w http.ResponseWriter, end time.Time) {
	_ = http.NewResponseController(w).SetReadDeadline(end)
}

// turnAway answers a review for which there was no room. An HTTP error would
// leave it to failurePolicy, and Ignore would let the write pass: so as much is
// read as it takes to answer, and no more.
func (s *Server) rejectOverloaded(w http.ResponseWriter, r *http.Request, door string, j evaluator) {
	s.Metrics.overloaded(door)
	setReadDeadline(w, time.Now().Add(grace))
	uid, err := uidOfReview(r.Body)
	s.Log.V(1).Info("no room", "webhook", door, "uid", uid, "length", r.ContentLength, "waiting", s.limiter.waiting.Load())
	if err != nil || uid == "" {
		w.Header().Set("Retry-After", "1")
		w.Header().Set("Connection", "close") // another replica may have room
		http.Error(w, overloadMessage, http.StatusServiceUnavailable)
		return
	}
	s.respond(w, &admissionv1.AdmissionRequest{UID: uid}, door, j.onOverload())
}

// overloaded is the answer of validating where there is too much to do.
func (s *Server) denyOverloaded() response { return s.denyUndecided("Overloaded", overloadMessage) }

// reviewHead is in how many bytes of a review its uid has to be: the API server
// writes it first of all.
const maxUIDOffset = 4 << 10

// uidOfReview reads the head of a review as far as its uid.
func uidOfReview(body io.Reader) (types.UID, error) {
	d := json.NewDecoder(io.LimitReader(body, maxUIDOffset))
	for _, name := range []string{"request", "uid"} {
		if err := seekField(d, name); err != nil {
			return "", err
		}
	}
	var uid types.UID
	err := d.Decode(&uid)
	return uid, err
}

// descend reads an object as far as the value of a member.
func seekField(d *json.Decoder, name string) error {
	if _, err := d.Token(); err != nil { // its brace; of anything else the next is no name
		return err
	}
	for {
		key, err := d.Token()
		if err != nil || key == name {
			return err
		}
		var other json.RawMessage
		if err := d.Decode(&other); err != nil {
			return err
		}
	}
}
