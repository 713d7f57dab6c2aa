package process

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Run runs functions, such as Start of a Runnable, until stop is called or the test ends.
// They must return no error then.
func Run(t testing.TB, functions ...func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	for _, run := range functions {
		running.Go(func() { assert.NoError(t, run(ctx)) })
	}
	stop = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(stop)
	return stop
}
