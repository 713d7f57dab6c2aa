package replay

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/webhook"
)

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
func Replay(ctx context.Context, h *History) (*Report, error) {
	began := time.Now()
	s, err := newState(h.Objects)
	if err != nil {
		return nil, err
	}
	e := newEvaluator(s)
	out := &Report{}
	for w, err := range h.Writes {
		if err != nil {
			return nil, err
		}
		out.Writes++
		if err := e.evaluate(ctx, w, out); err != nil {
			return nil, fmt.Errorf("evaluate the write of %s, resource version %d: %w", w.Ref, w.Version, err)
		}
		if err := s.apply(w); err != nil {
			return nil, fmt.Errorf("apply the write of %s, resource version %d: %w", w.Ref, w.Version, err)
		}
	}
	out.Took = time.Since(began)
	return out, nil
}

// evaluator evaluates writes, one after another.
type evaluator struct {
	before  *state // the state before the write
	handler http.Handler
}

func newEvaluator(s *state) evaluator {
	return evaluator{s, webhook.New(webhook.Options{Store: s.store, Guard: &guard.Guard{
		Engine: effective.NewEngine(), Permissions: permissions{},
	}}).Handler()}
}

// evaluate evaluates a write, and adds the result to a report.
func (e evaluator) evaluate(ctx context.Context, w Write, into *Report) error {
	request, err := e.before.request(w)
	if err != nil || request == nil {
		return err
	}
	response, err := review(ctx, e.handler, request)
	if err != nil {
		return err
	}
	into.Evaluated++
	if !response.Allowed {
		into.Findings = append(into.Findings, newFinding(w, request.Operation, response.Result.Message))
	}
	return nil
}

// permissions are those of the users who write, none of whom may override. They implement
// guard.Permissions.
type permissions struct{}

// MayOverride implements guard.Permissions.
func (permissions) MayOverride(context.Context, *authenticationv1.UserInfo, api.Ref) (bool, error) {
	return false, nil
}

// Check implements guard.Permissions.
func (permissions) Check(policy api.Ref) string { return "the override of " + policy.String() }

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
