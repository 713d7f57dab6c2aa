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

// ErrGone means that an object does not exist any more, or was replaced by another of
// the same name.
var ErrGone = errors.New("object not found")

// errMarksDiffer means that an object has other marks after a write.
var errMarksDiffer = errors.New("object has different marks than were written: the cache of another replica differs, or another client writes them")

// RightError is a missing permission.
type RightError struct {
	// User that lacks the permission Verb on Resource.
	User, Verb, Resource string
	Cause                error
}

// Error returns the missing permission and how to grant it.
func (e *RightError) Error() string {
	return fmt.Sprintf("%s is not allowed to %s %s: grant it with a ClusterRole that has the label overrule.dev/aggregate-to-refresher (docs/running.md, Annotation refresh): %v",
		e.User, e.Verb, e.Resource, e.Cause)
}

// Unwrap returns the error of the API server.
func (e *RightError) Unwrap() error { return e.Cause }

// reconcile writes an object if its marks differ from the desired ones. It returns
// after what time to process the object again, 0 for not at all; after an error it is
// retried with backoff.
func (c *Controller) reconcile(ctx context.Context, ref api.Ref) (after time.Duration, err error) {
	defer background.RecoverError(&err, "update marks")
	v, ready := c.opts.Store.View()
	if !ready {
		return c.opts.Delay, nil
	}
	entry, known := c.inventory.get(ref)
	o := v.Get(ref)
	if !known || o == nil || entry.marks.Deleting || entry.marks.OptedOut || v.NamespaceLabels(ref.Namespace)[api.LabelRefresh] == "false" {
		return 0, nil
	}
	kind := ref.PolicyKind()
	if wait := time.Until(c.blockedUntil[kind]); wait > 0 {
		return wait, nil
	}
	marks, err := c.compute(ctx, v, o, entry.marks)
	if err != nil {
		return 0, err
	}
	want := marks.Hash()
	if want == entry.marks.Hash {
		return 0, nil
	}
	if wait := time.Until(entry.lastWrite.Add(entry.writeInterval(c.opts.Every))); wait > 0 {
		return wait, nil
	}
	got, err := c.opts.Cluster.Write(ctx, ref, entry.uid, marks)
	c.inventory.recordWrite(ref, time.Now(), c.opts.Every)
	if err == nil && got != want {
		err = errMarksDiffer
	}
	return c.handleResult(ctx, ref, marks, err)
}

func (c *Controller) compute(ctx context.Context, v *snapshot.View, o snapshot.Object, current snapshot.Marks) (*DesiredMarks, error) {
	c.computeMu.Lock()
	defer c.computeMu.Unlock()
	if err := c.throttle.step(ctx); err != nil {
		return nil, err
	}
	return c.desiredMarks(ctx, v, o, current)
}

// handleResult counts a write, logs what needs attention, and returns when to retry.
func (c *Controller) handleResult(ctx context.Context, ref api.Ref, marks *DesiredMarks, err error) (time.Duration, error) {
	kind := ref.PolicyKind()
	missingRight, forbidden := errors.AsType[*RightError](err)
	_, before := c.blockedUntil[kind]
	if err == nil && before {
		delete(c.blockedUntil, kind)
		c.opts.Log.Info("marks can be written again", "kind", kind.String())
	}
	switch {
	case ctx.Err() != nil:
	case err == nil:
		c.results.add(resultWritten)
		if len(marks.LeftOut) > 0 {
			c.opts.Log.Info("too many conditions; some are omitted", "object", ref.String(), "omitted", marks.LeftOut)
		}
	case errors.Is(err, ErrGone):
		c.results.add(resultGone)
		return 0, nil
	case forbidden:
		c.results.add(resultForbidden)
		if !before {
			c.opts.Log.Error(missingRight, "not allowed to update marks; retrying every minute", "kind", kind.String())
		}
		c.blockedUntil[kind] = time.Now().Add(forbiddenRetry)
		return forbiddenRetry, nil
	case errors.Is(err, errMarksDiffer):
		c.results.add(resultOtherwise)
		c.opts.Log.V(1).Info("marks differ after a write; retrying", "object", ref.String())
	default:
		c.results.add(resultFailed)
		c.opts.Log.Info("updating marks failed; retrying", "object", ref.String(), "cause", api.RedactToken(err.Error()))
	}
	return 0, err
}
