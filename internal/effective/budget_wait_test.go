package effective_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/effective"
)

func TestBudgetExceeded(t *testing.T) {
	for name, c := range map[string]struct {
		evaluated, waited time.Duration
		want              bool
	}{
		"there is time":                {time.Second, 500 * time.Millisecond, false},
		"the evaluation took it":       {2 * time.Second, 0, true},
		"the evaluation took most":     {1500 * time.Millisecond, 500 * time.Millisecond, true},
		"the API server took most":     {500 * time.Millisecond, 1500 * time.Millisecond, false},
		"the API server took it alone": {0, 2 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				b := effective.NewBudget(ctx, 1)
				time.Sleep(c.evaluated)
				require.NoError(t, b.Wait(func() error { time.Sleep(c.waited); return nil }))
				synctest.Wait()
				got := b.Exceeded()
				require.Equal(t, c.want, got != nil)
				if got != nil {
					assert.ErrorIs(t, got, effective.ErrTooMuch)
					assert.ErrorIs(t, got, context.DeadlineExceeded)
				}
			})
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.NotNil(t, effective.NewBudget(ctx, 1).Exceeded(), "it ended before anything was read")
}
