package server

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

func TestLeaderWorkRunsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var starts, running atomic.Int32
		work := new(leaderWork)
		for range 2 {
			work.Add(manager.RunnableFunc(func(ctx context.Context) error {
				starts.Add(1)
				running.Add(1)
				<-ctx.Done()
				running.Add(-1)
				return fmt.Errorf("write: %w", ctx.Err())
			}))
		}
		work.Add(manager.RunnableFunc(func(context.Context) error { return nil }))
		for term := range int32(2) {
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- work.Run(ctx) }()
			synctest.Wait()
			assert.Equal(t, []int32{2*term + 2, 2}, []int32{starts.Load(), running.Load()}, "one that ends does not stop the others")
			cancel()
			require.NoError(t, <-ended)
			assert.Zero(t, running.Load(), "Run waits for all")
		}
	})
}

func TestLeaderWorkStopsAfterError(t *testing.T) {
	failure := errors.New("no such resource")
	stopped := false
	work := new(leaderWork)
	work.Add(manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		stopped = true
		return ctx.Err()
	}))
	work.Add(manager.RunnableFunc(func(context.Context) error { return failure }))
	require.ErrorIs(t, work.Run(t.Context()), failure)
	assert.True(t, stopped)
}
