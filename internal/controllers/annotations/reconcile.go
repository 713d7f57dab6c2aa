package annotations

import (
	"context"
	"errors"
	"fmt"
	"time"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/background"
	"overrule.dev/overrule/internal/snapshot"
)

// ErrGone tells that an object is not there any more, or is another one.
var ErrGone = errors.New("object not found")

// errOtherwise tells that an object was written and has other marks all the same.
var errMarksDiffer = errors.New("object has different marks than were written: the cache of another replica differs, or another client writes them")

// RightError tells which right is missing.
type RightError struct {
	// User that lacks it, and what it may not do.
	User, Verb, Resource string
	Cause                error
}

// Error says what to do about it.
func (e *RightError) Error() string {
	return fmt.Sprintf("%s is not allowed to %s %s: grant it with a ClusterRole that has the label overrule.dev/aggregate-to-refresher (docs/operations.md, Kept fresh): %v",
		e.User, e.Verb, e.Resource, e.Cause)
}

// Unwrap returns what the API server said.
func (e *RightError) Unwrap() error { return e.Cause }

// refresh writes an object if its marks are not as they are to be. It is to be seen
// to again after a time unless that is 0, or after a while if there is an error.
func (r *Controller) reconcile(ctx context.Context, ref api.Ref) (after time.Duration, err error) {
	defer background.Recovered(&err, "refresh")
	v, ready := r.Store.View()
	if !ready {
		return r.Delay, nil
	}
	has, known := r.inventory.get(ref)
	o := v.Get(ref)
	if !known || o == nil || has.marks.Going || has.marks.OptedOut || v.NamespaceLabels(ref.Namespace)[api.LabelRefresh] == "false" {
		return 0, nil
	}
	kind := ref.PolicyKind()
	if wait := time.Until(r.blockedUntil[kind]); wait > 0 {
		return wait, nil
	}
	w, err := r.compute(ctx, v, o, has.marks)
	if err != nil {
		return 0, err
	}
	want := w.Hash()
	if want == has.marks.Hash {
		return 0, nil
	}
	if wait := time.Until(has.lastWrite.Add(has.writeInterval(r.Every))); wait > 0 {
		return wait, nil
	}
	got, err := r.Cluster.Write(ctx, ref, has.uid, w)
	r.inventory.recordWrite(ref, time.Now(), r.Every)
	if err == nil && got != want {
		err = errMarksDiffer
	}
	return r.handleResult(ctx, ref, w, err)
}

func (r *Controller) compute(ctx context.Context, v *snapshot.View, o snapshot.Object, has snapshot.Marks) (*DesiredMarks, error) {
	r.computeMu.Lock()
	defer r.computeMu.Unlock()
	if err := r.throttle.step(ctx); err != nil {
		return nil, err
	}
	return r.desiredMarks(ctx, v, o, has)
}

// booked counts a write, tells of it where somebody should know, and returns when to
// try again.
func (r *Controller) handleResult(ctx context.Context, ref api.Ref, w *DesiredMarks, err error) (time.Duration, error) {
	kind := ref.PolicyKind()
	right, missing := errors.AsType[*RightError](err)
	_, before := r.blockedUntil[kind]
	if err == nil && before {
		delete(r.blockedUntil, kind)
		r.Log.Info("marks can be written again", "kind", kind.String())
	}
	switch {
	case ctx.Err() != nil:
	case err == nil:
		r.results.add(resultWritten)
		if len(w.LeftOut) > 0 {
			r.Log.Info("too many conditions; some are omitted", "object", ref.String(), "omitted", w.LeftOut)
		}
	case errors.Is(err, ErrGone):
		r.results.add(resultGone)
		return 0, nil
	case missing:
		r.results.add(resultForbidden)
		if !before {
			r.Log.Error(right, "not allowed to update marks; retrying every minute", "kind", kind.String())
		}
		r.blockedUntil[kind] = time.Now().Add(forbiddenRetry)
		return forbiddenRetry, nil
	case errors.Is(err, errMarksDiffer):
		r.results.add(resultOtherwise)
		r.Log.V(1).Info("marks differ after a write; retrying", "object", ref.String())
	default:
		r.results.add(resultFailed)
		r.Log.Info("updating marks failed; retrying", "object", ref.String(), "cause", api.RedactToken(err.Error()))
	}
	return 0, err
}
