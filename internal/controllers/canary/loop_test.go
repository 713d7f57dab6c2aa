package canary

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// cage is a loop whose canary comes to what a test says, in a bubble of time.
type loopFixture struct {
	*Loop
	outcomes []Outcome // those to come; then it passes
	at       []time.Duration
	told     []Outcome
	words    []string
	ready    chan struct{}
}

func newLoopFixture(outcomes ...Outcome) *loopFixture {
	c := &loopFixture{outcomes: outcomes, ready: make(chan struct{})}
	born := time.Now()
	c.Loop = &Loop{
		Interval: time.Minute, Log: logr.Discard(),
		Run: func(context.Context) Result {
			c.at = append(c.at, time.Since(born))
			next := Passed
			if len(c.outcomes) > 0 {
				next, c.outcomes = c.outcomes[0], c.outcomes[1:]
			}
			return resultOf(next)
		},
		Ready: func(ctx context.Context) {
			select {
			case <-ctx.Done():
			case <-c.ready:
			}
		},
		Started: func(context.Context) { c.words = append(c.words, "begun") },
		Report:  func(_ context.Context, r Result) { c.told = append(c.told, r.Outcome) },
		Stopped: func(ctx context.Context) {
			if ctx.Err() == nil {
				c.words = append(c.words, "ended")
			}
		},
	}
	return c
}

// runs lets a loop run for a time.
func (c *loopFixture) runs(t *testing.T, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	require.NoError(t, c.Start(ctx))
	assert.Equal(t, []string{"begun", "ended"}, c.words, "there is time left to say that it ends")
}

func TestLoopInterval(t *testing.T) {
	for name, c := range map[string]struct {
		outcomes []Outcome
		want     []time.Duration // in seconds, after the webhook configurations were written
	}{
		"each interval":                      {nil, []time.Duration{2, 62, 122}},
		"soon again after a failure":         {[]Outcome{Passed, Failed}, []time.Duration{2, 62, 67, 127}},
		"a second failure waits":             {[]Outcome{Failed, Failed, Failed}, []time.Duration{2, 7, 67, 127}},
		"so does one that could not be":      {[]Outcome{Untried, Failed}, []time.Duration{2, 7, 67, 127}},
		"each failure after a pass is tried": {[]Outcome{Failed, Passed, Failed}, []time.Duration{2, 7, 67, 72, 132}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cage := newLoopFixture(c.outcomes...)
				close(cage.ready)
				cage.runs(t, 135*time.Second)
				for i := range c.want {
					c.want[i] *= time.Second
				}
				assert.Equal(t, c.want, cage.at)
				assert.Len(t, cage.told, len(c.want))
			})
		})
	}
}

func TestFailureDoesNotExtendShortInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cage := newLoopFixture(Failed)
		cage.Interval = time.Second
		close(cage.ready)
		cage.runs(t, 4500*time.Millisecond)
		assert.Equal(t, []time.Duration{2 * time.Second, 3 * time.Second, 4 * time.Second}, cage.at)
	})
}

func TestLoopWaitsForWebhooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cage := newLoopFixture()
		go func() {
			time.Sleep(10 * time.Second)
			close(cage.ready)
		}()
		cage.runs(t, 30*time.Second)
		assert.Equal(t, []time.Duration{12 * time.Second}, cage.at)
	})
	synctest.Test(t, func(t *testing.T) {
		cage := newLoopFixture()
		cage.runs(t, 90*time.Second)
		assert.Equal(t, []time.Duration{time.Minute}, cage.at, "configurations that are never written must be reported")
	})
}

func TestCanceledRunIsNotReported(t *testing.T) {
	for name, d := range map[string]time.Duration{"before it is ready": time.Second, "before the first run": 11 * time.Second, "in a run": 13 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cage := newLoopFixture()
				cage.Run = func(ctx context.Context) Result {
					<-ctx.Done()
					return resultOf(Untried)
				}
				go func() {
					time.Sleep(10 * time.Second)
					close(cage.ready)
				}()
				cage.runs(t, d)
				assert.Empty(t, cage.told)
				time.Sleep(10 * time.Second) // let the goroutines of the bubble end
			})
		})
	}
}

func TestLoopNeedsLeaderElection(t *testing.T) {
	assert.True(t, new(Loop).NeedLeaderElection())
}
