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
	// answerTTL is how long a result is cached: changes of RBAC take effect after
	// that time at most.
	answerTTL = 10 * time.Second
	// maxAnswers limits the number of cached results.
	maxAnswers = 4096
	// reviewTimeout limits a request. The caller may have less time; the result is
	// then cached for its retry.
	reviewTimeout = 10 * time.Second
)

// errNotEvaluated is the error of a review that the API server could not evaluate.
var errNotEvaluated = errors.New("the API server could not evaluate the review")

type reviewFunc func(context.Context, authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error)

// reviewCache sends one request at a time for equal reviews, and caches the results,
// positive and negative, for answerTTL. Errors are not cached.
type reviewCache struct {
	reviewFunc reviewFunc
	cache      *cache.LRUExpireCache
	inFlight   singleflight.Group
}

func newReviewCache(review reviewFunc) *reviewCache {
	return &reviewCache{reviewFunc: review, cache: cache.NewLRUExpireCache(maxAnswers)}
}

// get returns the result of a review, or an error when ctx ends.
func (c *reviewCache) get(ctx context.Context, spec authorizationv1.SubjectAccessReviewSpec) (bool, error) {
	encoded, err := json.Marshal(spec) // maps are written in order
	if err != nil {
		return false, fmt.Errorf("encode review: %w", err)
	}
	key := string(encoded)
	if cached, ok := c.cache.Get(key); ok {
		return cached == true, nil
	}
	// The request is shared, so it must not be cancelled with its first caller.
	callCtx := context.WithoutCancel(ctx)
	done := c.inFlight.DoChan(key, func() (any, error) { return c.review(callCtx, key, spec) })
	select {
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case r := <-done:
		return r.Val == true, r.Err
	}
}

// review sends the request, and caches the result.
func (c *reviewCache) review(ctx context.Context, key string, spec authorizationv1.SubjectAccessReviewSpec) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	status, err := c.reviewFunc(ctx, spec)
	if err != nil {
		return false, err
	}
	if !status.Allowed && !status.Denied && status.EvaluationError != "" {
		return false, fmt.Errorf("%w: %s", errNotEvaluated, status.EvaluationError)
	}
	c.cache.Add(key, status.Allowed, answerTTL)
	return status.Allowed, nil
}
