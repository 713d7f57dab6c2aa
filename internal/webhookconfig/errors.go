package webhookconfig

import (
	"context"
	"errors"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// errNotReady is returned while it is not known yet what to write.
var errNotReady = errors.New("not ready")

// maxQuietConflicts is the number of conflicts in a row that are not reported: they are
// resolved within seconds.
const maxQuietConflicts = 5

// handleError logs an error of a reconciliation that is retried after a time, and makes
// it the problem that Problem returns. It does not report errors that are expected.
func (r *Reconciler) handleError(ctx context.Context, err error, retry time.Duration) {
	conflict := apierrors.IsConflict(err)
	if conflict {
		r.term.conflicts++
	}
	switch {
	case ctx.Err() != nil:
	case errors.Is(err, errNotReady), conflict && r.term.conflicts <= maxQuietConflicts: // a concurrent write
		r.Log.V(1).Info("webhook configurations not written yet", "cause", err.Error())
	default:
		switch {
		case lacksRight(err):
			err = fmt.Errorf("%w: %s", err, restoreRight)
		case conflict:
			err = fmt.Errorf("another client keeps updating the webhook configurations; find it in the audit log of the API server: %w", err)
		}
		r.setProblem(err)
		r.Log.Error(err, "cannot write webhook configurations", "retry", retry.String())
	}
}

// Problem returns why the configurations are not as they should be, nil if no problem is
// known. Only the leader knows.
func (r *Reconciler) Problem() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.problem
}

func (r *Reconciler) problemText() string {
	if err := r.Problem(); err != nil {
		return err.Error()
	}
	return ""
}

func (r *Reconciler) setProblem(problem error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.problem = problem
}

// restoreRight says what to do about a missing right. Break-glass starts with removing
// it.
const restoreRight = "apply deploy/base/rbac-webhooks.yaml (with Helm, upgrade the release) to restore this right; " +
	"if it was removed on purpose, see docs/install.md, Break-glass"

// lacksRight reports whether an error is caused by a missing right on webhook
// configurations.
func lacksRight(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok || !apierrors.IsForbidden(err) {
		return false
	}
	details := status.ErrStatus.Details
	return details != nil && details.Group == admissionregistrationv1.GroupName
}
