package rights

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/singleflight"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/cache"
)

const (
	// keep is how long an answer is good: a right that is given or taken away
	// counts that much later at most.
	answerTTL = 10 * time.Second
	// most is how many answers are kept.
	maxAnswers = 4096
	// patience is how long the API server may take. Who asks may have less; the
	// answer then is there for the retry.
	reviewTimeout = 10 * time.Second
)

// errNotEvaluated tells that the API server could not say.
var errNotEvaluated = errors.New("the API server could not find it out")

type reviewFunc func(context.Context, authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error)

// answers asks equal questions once at a time and keeps the answers, yes and
// no, for seconds. Errors are not kept.
type reviewCache struct {
	reviewFunc reviewFunc
	cache      *cache.LRUExpireCache
	inFlight   singleflight.Group
}

func newReviewCache(ask reviewFunc) *reviewCache {
	return &reviewCache{reviewFunc: ask, cache: cache.NewLRUExpireCache(maxAnswers)}
}

// get answers a question, until ctx ends.
func (a *reviewCache) get(ctx context.Context, spec authorizationv1.SubjectAccessReviewSpec) (bool, error) {
	encoded, err := json.Marshal(spec) // maps are written in order
	if err != nil {
		return false, fmt.Errorf("write the question: %w", err)
	}
	key := string(encoded)
	if known, ok := a.cache.Get(key); ok {
		return known == true, nil
	}
	// whoever asks first must not take the answer away from the others by
	// leaving: the call lives on without them
	callCtx := context.WithoutCancel(ctx)
	done := a.inFlight.DoChan(key, func() (any, error) { return a.review(callCtx, key, spec) })
	select {
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case r := <-done:
		return r.Val == true, r.Err
	}
}

// review asks, and keeps the answer.
func (a *reviewCache) review(ctx context.Context, key string, spec authorizationv1.SubjectAccessReviewSpec) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	status, err := a.reviewFunc(ctx, spec)
	if err != nil {
		return false, err
	}
	if !status.Allowed && !status.Denied && status.EvaluationError != "" {
		return false, fmt.Errorf("%w: %s", errNotEvaluated, status.EvaluationError)
	}
	a.cache.Add(key, status.Allowed, answerTTL)
	return status.Allowed, nil
}
