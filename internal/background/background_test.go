package background

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		assert.True(t, Sleep(t.Context(), time.Minute))
		assert.Equal(t, time.Minute, time.Since(begun))

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.False(t, Sleep(ctx, time.Hour))
		assert.Equal(t, time.Minute+time.Second, time.Since(begun))
		assert.False(t, Sleep(ctx, 0), "the time is over as well")
	})
}

func TestRecovered(t *testing.T) {
	do := func(act func() error) (err error) {
		defer RecoverError(&err, "count the beans")
		return act()
	}
	err := do(func() error { panic("there are none") })
	require.ErrorIs(t, err, ErrPanic)
	assert.ErrorContains(t, err, "count the beans: panic: there are none\n")
	assert.ErrorContains(t, err, "background_test.go")

	require.NoError(t, do(func() error { return nil }))
	assert.Equal(t, context.Canceled, do(func() error { return context.Canceled }), "an error of its own stays what it is")
}
