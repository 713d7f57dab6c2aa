package replay

import (
	"context"
	"fmt"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/webhook"
)

// Options of a replay.
type Options struct {
	// Ignore, if set, reports the writes that are not evaluated, only applied.
	Ignore func(Write) bool
	// User, if set, returns who made a write. What is stored does not say it: without
	// User it is a user without a name.
	User func(Write) authenticationv1.UserInfo
	// Permissions, if set, decides who is allowed to remove overrides; without it, no
	// one is.
	Permissions guard.Permissions
	// BlastRadius is the limit of the servers that evaluated the writes, 0 for none.
	BlastRadius int
}

// Finding is a write that was stored and is denied in the replay.
type Finding struct {
	Write
	Operation string
	// Codes are the distinct reason codes of the denial, Message has all of it.
	Codes   []api.ReasonCode
	Message string
}

// String returns the finding for a message.
func (f Finding) String() string {
	return fmt.Sprintf("%s of %s, resource version %d: %s", f.Operation, f.Ref, f.Version, f.Message)
}

// Report is the result of a replay.
type Report struct {
	// Writes is the number of writes in the history, Evaluated that of those that were
	// evaluated: a server is not asked about the others.
	Writes, Evaluated int
	Took              time.Duration
	Findings          []Finding
}

// String returns the counts.
func (r *Report) String() string {
	return fmt.Sprintf("replayed %d writes in %s: %d evaluated, %d would have been denied",
		r.Writes, r.Took.Round(time.Millisecond), r.Evaluated, len(r.Findings))
}

// Replay evaluates each write of a history on the state before it, and then applies it,
// whatever the decision is. The error is that of a write that could not be evaluated.
func Replay(ctx context.Context, h *History, o Options) (*Report, error) {
	began := time.Now()
	s, err := newState(h.Objects)
	if err != nil {
		return nil, err
	}
	handler := webhook.New(webhook.Options{Store: s.store, Guard: &guard.Guard{
		Engine: effective.NewEngine(), KindReader: s, Permissions: o.Permissions, BlastRadius: o.BlastRadius,
	}}).Handler()
	out := &Report{Writes: len(h.Writes)}
	for _, w := range h.Writes {
		request, err := s.request(w)
		if err != nil {
			return nil, err
		}
		if request != nil && (o.Ignore == nil || !o.Ignore(w)) {
			if o.User != nil {
				request.UserInfo = o.User(w)
			}
			out.Evaluated++
			response, err := evaluate(ctx, handler, request)
			if err != nil {
				return nil, fmt.Errorf("evaluate %s of %s, resource version %d: %w", request.Operation, w.Ref, w.Version, err)
			}
			if !response.Allowed {
				out.Findings = append(out.Findings, newFinding(w, request.Operation, response.Result.Message))
			}
		}
		if err := s.apply(w); err != nil {
			return nil, fmt.Errorf("apply the write of %s, resource version %d: %w", w.Ref, w.Version, err)
		}
	}
	out.Took = time.Since(began)
	return out, nil
}

// newFinding returns the finding for a denial. Each line of its message begins with a
// reason code.
func newFinding(w Write, operation admissionv1.Operation, message string) Finding {
	f := Finding{Write: w, Operation: string(operation), Message: message}
	seen := make(map[string]bool)
	for line := range strings.Lines(message) {
		code, _, ok := strings.Cut(line, ": ")
		if ok && !seen[code] {
			seen[code] = true
			f.Codes = append(f.Codes, api.ReasonCode(code))
		}
	}
	return f
}
