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
	keep = 10 * time.Second
	// most is how many answers are kept.
	most = 4096
	// patience is how long the API server may take. Who asks may have less; the
	// answer then is there for the retry.
	patience = 10 * time.Second
)

// errNotEvaluated tells that the API server could not say.
var errNotEvaluated = errors.New("the API server could not find it out")

type ask func(context.Context, authorizationv1.SubjectAccessReviewSpec) (authorizationv1.SubjectAccessReviewStatus, error)

// answers asks equal questions once at a time and keeps the answers, yes and
// no, for seconds. Errors are not kept.
type answers struct {
	ask    ask
	known  *cache.LRUExpireCache
	flight singleflight.Group
}

func newAnswers(ask ask) *answers {
	return &answers{ask: ask, known: cache.NewLRUExpireCache(most)}
}

// get answers a question, until ctx ends.
func (a *answers) get(ctx context.Context, spec authorizationv1.SubjectAccessReviewSpec) (bool, error) {
	question, err := json.Marshal(spec) // maps are written in order
	if err != nil {
		return false, fmt.Errorf("write the question: %w", err)
	}
	key := string(question)
	if known, ok := a.known.Get(key); ok {
		return known == true, nil
	}
	// whoever asks first must not take the answer away from the others by
	// leaving: the call lives on without them
	alone := context.WithoutCancel(ctx)
	answered := a.flight.DoChan(key, func() (any, error) { return a.review(alone, key, spec) })
	select {
	case <-ctx.Done():
		return false, context.Cause(ctx)
	case r := <-answered:
		return r.Val == true, r.Err
	}
}

// review asks, and keeps the answer.
func (a *answers) review(ctx context.Context, key string, spec authorizationv1.SubjectAccessReviewSpec) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	status, err := a.ask(ctx, spec)
	if err != nil {
		return false, err
	}
	if !status.Allowed && !status.Denied && status.EvaluationError != "" {
		return false, fmt.Errorf("%w: %s", errNotEvaluated, status.EvaluationError)
	}
	a.known.Add(key, status.Allowed, keep)
	return status.Allowed, nil
}
