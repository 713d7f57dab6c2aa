package process

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const sleepScript = "exec sleep 600"

func TestUntilPolls(t *testing.T) {
	p := shell(t, sleepScript)
	asked := 0

	err := p.Until(t.Context(), Wait{Limit: time.Hour}, func(context.Context) (bool, string) { asked++; return asked == 3, "no" })

	require.NoError(t, err)
	assert.Equal(t, 3, asked)
}

func TestUntilFailsWhenProgramEnds(t *testing.T) {
	p := shell(t, "echo unknown flag; exit 2")
	<-p.Done()

	err := p.Until(t.Context(), Wait{Limit: time.Hour, Pause: time.Hour}, func(context.Context) (bool, string) { return false, "no" })

	require.ErrorIs(t, err, ErrNotYet)
	assert.EqualError(t, err, "condition not met: exited with code 2; log:\nunknown flag\n")
}

func TestUntilReportsLastAnswer(t *testing.T) {
	p := shell(t, sleepScript)
	answers := []string{"starting", "listing"}

	err := p.Until(t.Context(), Wait{Limit: 50 * time.Millisecond, Problem: "it sleeps"}, func(ctx context.Context) (bool, string) {
		if len(answers) > 0 {
			answer := answers[0]
			answers = answers[1:]
			return false, answer
		}
		<-ctx.Done()
		return false, "deadline exceeded"
	})

	require.ErrorIs(t, err, ErrNotYet)
	assert.EqualError(t, err, "condition not met: it sleeps (listing); log:\n")
}

func TestUntilEndsWithContext(t *testing.T) {
	p := shell(t, sleepScript)
	ctx, cancel := context.WithCancel(t.Context())

	err := p.Until(ctx, Wait{Limit: time.Hour, Pause: time.Hour}, func(context.Context) (bool, string) { cancel(); return false, "no" })

	assert.ErrorIs(t, err, context.Canceled)
}

func TestOKIsStatus200(t *testing.T) {
	var code atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(int(code.Load()))
		_, _ = w.Write([]byte("listing"))
	}))
	for status, want := range map[int]bool{http.StatusOK: true, http.StatusServiceUnavailable: false} {
		code.Store(int32(status))
		done, answer := OK(s.URL)(t.Context())
		assert.Equal(t, want, done)
		assert.Equal(t, "listing", answer)
	}
	s.Close()
	done, answer := OK(s.URL)(t.Context())
	assert.False(t, done)
	assert.Contains(t, answer, "connection refused")
	done, answer = OK("http://a b")(t.Context())
	assert.False(t, done)
	assert.Contains(t, answer, "invalid character")
}
