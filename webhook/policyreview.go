package webhook

import (
	"context"
	"errors"
	"fmt"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	fieldpath "k8s.io/apimachinery/pkg/util/validation/field"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/decode"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/lookup"
	"overrule.dev/overrule/internal/snapshot"
)

// kindReview is the kind of the questions.
var kindReview = api.PolicyKind{Group: api.Group, Kind: api.KindEffectivePolicyReview}

// Readers decides which users are allowed to get an object (rights.Reviewer). It is safe
// for concurrent use.
type Readers interface {
	// MayGet reports whether a user is allowed to. It returns an error if that cannot be
	// determined now.
	MayGet(ctx context.Context, user *authenticationv1.UserInfo, object api.Ref) (bool, error)
}

// maxReviewBytes limits a review: the API server validates its schema, with the limits of each
// field, after it is answered, and answers and denials repeat parts of it.
const maxReviewBytes = 64 << 10

// notDryRunMessage is that of the ValidatingAdmissionPolicy in deploy/base/reviews.yaml.
const notDryRunMessage = "an EffectivePolicyReview is answered and not stored; run: kubectl create --dry-run=server -o yaml -f FILE"

// rightsMessage is the denial of a review if the API server does not say what the user is
// allowed to get.
const rightsMessage = "cannot determine which objects you are allowed to get; retry in 1s"

// denyReviewFailed is the response if answering panics or exceeds the deadline.
func denyReviewFailed(reason, message string) response {
	if reason == string(api.ReasonTooMuch) {
		return denyReviewTooMuch()
	}
	return deny(reason, message)
}

// answerReview answers an EffectivePolicyReview in its status. Whatever is wrong with the
// question is a denial, whose message kubectl prints. An object that does not exist and
// one that the user is not allowed to get have the same one.
func answerReview(ctx context.Context, c *call, v *snapshot.View) response {
	r := c.request
	switch {
	case kindOf(r) != kindReview || r.SubResource != "":
		return denyInvalid("must be an EffectivePolicyReview")
	case !isDryRun(r):
		return deny(api.DenialNotDryRun, notDryRunMessage)
	case c.opts.Readers == nil:
		return denyInvalid("EffectivePolicyReviews are not supported")
	case len(r.Object.Raw) > maxReviewBytes:
		return denyInvalid(fmt.Sprintf("an EffectivePolicyReview must not have more than %d bytes", maxReviewBytes))
	}
	review, err := decode.As[reviewDocument](r.Object.Raw)
	if err != nil {
		return denyInvalid(fmt.Sprintf("invalid EffectivePolicyReview: %v", err))
	}
	q, errs := question(v, r.Namespace, &review.Spec)
	if len(errs) > 0 {
		return denyInvalid(fieldMessage(errs))
	}
	reader := &reviewReader{ctx: ctx, time: effective.NewBudget(ctx, 0), readers: c.opts.Readers, user: &r.UserInfo, known: make(map[api.Ref]bool)}
	resp := c.answerQuestion(ctx, q, objectOf(&review.Spec.Object, r.Namespace), reader)
	switch {
	case reader.err == nil:
		return resp
	case reader.time.Exceeded() != nil: // the answer took the time, and would take it again
		return denyReviewTooMuch()
	default: // the cause is only logged
		c.opts.Log.Error(reader.err, "cannot determine rights for a review", "uid", r.UID)
		return denyWithRetry(api.DenialRightsUnknown, rightsMessage)
	}
}

// answerQuestion returns the answer about an object as a patch of the status. It does not
// count if the rights of the reader are not known.
func (c *call) answerQuestion(ctx context.Context, q *lookup.Query, about api.Ref, reader *reviewReader) response {
	object := q.View.Get(about)
	if reader.hides(about) || object == nil {
		return deny(api.DenialNotFound, printable(lookup.NotFound(about).Error()))
	}
	q.Engine, q.Objects, q.Hides = c.opts.Guard.Engine, []snapshot.Object{object}, reader.hides
	q.Cost, q.PathCost = guard.DefaultBudget, guard.PathBudget
	status, err := q.Answer(ctx)
	switch {
	case errors.Is(err, effective.ErrTooMuch):
		return denyReviewTooMuch()
	case errors.Is(err, lookup.ErrNotFound):
		return deny(api.DenialNotFound, printable(err.Error()))
	case err != nil:
		return denyInvalid(err.Error())
	}
	if reader.asked > maxReviewedObjects {
		status.Message = strings.TrimSpace(fmt.Sprintf("%s\nYour rights were checked for %d objects one by one, and values of the others are left out; set spec.policyKinds", status.Message, maxReviewedObjects))
	}
	resp := allow()
	if err := resp.setPatch([]patchOperation{{Op: "add", Path: "/status", Value: status}}); err != nil {
		c.opts.Log.Error(err, "cannot encode the answer of a review")
		return denyInvalid("internal error: cannot encode the answer")
	}
	return resp
}

func denyInvalid(message string) response { return deny(string(api.ReasonInvalid), printable(message)) }

// fieldMessage returns the messages of errors, one after another.
func fieldMessage(errs fieldpath.ErrorList) string {
	var out []string
	for _, err := range errs {
		out = append(out, err.Error())
	}
	return strings.Join(out, "; ")
}

// maxReviewedObjects is the number of objects about which the API server is asked one by
// one for a review. Users without wide rights are not shown the values of the others.
const maxReviewedObjects = 256

// reviewReader is the user of a review.
type reviewReader struct {
	ctx     context.Context   //nolint:containedctx // of one review
	time    *effective.Budget // tells the time of the review from that of the readers
	readers Readers
	user    *authenticationv1.UserInfo
	known   map[api.Ref]bool // by object, and by kind and namespace: whether it is hidden
	asked   int              // objects that are not in known or were added to it
	err     error            // the first one; all that is asked after it is hidden
}

// hides reports whether the user is not allowed to get an object, also if that is not
// known. Objects that the user is allowed to get by a wide right are not counted.
func (r *reviewReader) hides(ref api.Ref) bool {
	if hidden, ok := r.known[ref]; ok {
		return hidden
	}
	inNamespace := api.Ref{Group: ref.Group, Kind: ref.Kind, Namespace: ref.Namespace}
	if !r.ask(api.Ref{Group: ref.Group, Kind: ref.Kind}) {
		return false
	}
	if hidden, ok := r.known[inNamespace]; ok && !hidden {
		return false
	}
	if r.err != nil {
		return true
	}
	if r.asked++; r.asked > maxReviewedObjects {
		return true
	}
	return r.ask(inNamespace) && r.ask(ref)
}

// ask reports whether an object, or all of a kind or of a namespace, is hidden.
func (r *reviewReader) ask(ref api.Ref) bool {
	hidden, ok := r.known[ref]
	if ok || r.err != nil {
		return hidden || !ok
	}
	var may bool
	r.err = r.time.Wait(func() (err error) {
		may, err = r.readers.MayGet(r.ctx, r.user, ref)
		return err
	})
	r.known[ref] = !may || r.err != nil
	return r.known[ref]
}
