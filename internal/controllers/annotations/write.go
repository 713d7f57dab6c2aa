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
var ErrGone = errors.New("the object is gone")

// errOtherwise tells that an object was written and has other marks all the same.
var errOtherwise = errors.New("it has other marks than were written: another server sees the cluster otherwise, or takes part")

// RightError tells which right is missing.
type RightError struct {
	// User that lacks it, and what it may not do.
	User, Verb, Resource string
	Cause                error
}

// Error says what to do about it.
func (e *RightError) Error() string {
	return fmt.Sprintf("%s may not %s %s: give it that right by a ClusterRole with the label overrule.dev/aggregate-to-refresher (docs/operations.md, Kept fresh): %v",
		e.User, e.Verb, e.Resource, e.Cause)
}

// Unwrap returns what the API server said.
func (e *RightError) Unwrap() error { return e.Cause }

// refresh writes an object if its marks are not as they are to be. It is to be seen
// to again after a time unless that is 0, or after a while if there is an error.
func (r *Refresher) refresh(ctx context.Context, ref api.Ref) (after time.Duration, err error) {
	defer background.Recovered(&err, "refresh")
	v, ready := r.Store.View()
	if !ready {
		return r.Delay, nil
	}
	has, known := r.objects.get(ref)
	o := v.Get(ref)
	if !known || o == nil || has.marks.Deleting || has.marks.OptedOut || v.NamespaceLabels(ref.Namespace)[api.LabelRefresh] == "false" {
		return 0, nil
	}
	kind := ref.PolicyKind()
	if wait := time.Until(r.barred[kind]); wait > 0 {
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
	if wait := time.Until(has.wrote.Add(has.rest(r.Every))); wait > 0 {
		return wait, nil
	}
	got, err := r.Cluster.Write(ctx, ref, has.uid, w)
	r.objects.wrote(ref, time.Now(), r.Every)
	if err == nil && got != want {
		err = errOtherwise
	}
	return r.booked(ctx, ref, w, err)
}

func (r *Refresher) compute(ctx context.Context, v *snapshot.View, o snapshot.Object, has snapshot.Marks) (*DesiredMarks, error) {
	r.computing.Lock()
	defer r.computing.Unlock()
	if err := r.pace.step(ctx); err != nil {
		return nil, err
	}
	return r.wanted(ctx, v, o, has)
}

// booked counts a write, tells of it where somebody should know, and returns when to
// try again.
func (r *Refresher) booked(ctx context.Context, ref api.Ref, w *DesiredMarks, err error) (time.Duration, error) {
	kind := ref.PolicyKind()
	right, missing := errors.AsType[*RightError](err)
	_, before := r.barred[kind]
	if err == nil && before {
		delete(r.barred, kind)
		r.Log.Info("marks can be written again", "kind", kind.String())
	}
	switch {
	case ctx.Err() != nil:
	case err == nil:
		r.counted.add(resultWritten)
		if len(w.LeftOut) > 0 {
			r.Log.Info("no room for conditions: Gateway API takes eight, and two are left free", "object", ref.String(), "leftOut", w.LeftOut)
		}
	case errors.Is(err, ErrGone):
		r.counted.add(resultGone)
		return 0, nil
	case missing:
		r.counted.add(resultForbidden)
		if !before {
			r.Log.Error(right, "marks are not refreshed; tried again each minute", "kind", kind.String())
		}
		r.barred[kind] = time.Now().Add(barredFor)
		return barredFor, nil
	case errors.Is(err, errOtherwise):
		r.counted.add(resultOtherwise)
		r.Log.V(1).Info("marks differ after a write; tried again", "object", ref.String())
	default:
		r.counted.add(resultFailed)
		r.Log.Info("marks were not written; tried again", "object", ref.String(), "cause", api.RedactToken(err.Error()))
	}
	return 0, err
}
