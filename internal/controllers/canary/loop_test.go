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

// loopFixture is a Loop whose canary returns given outcomes, for use in a synctest bubble.
type loopFixture struct {
	*Loop
	outcomes []Outcome // of the next runs; later ones pass
	at       []time.Duration
	reported []Outcome
	calls    []string
	ready    chan struct{}
}

func newLoopFixture(outcomes ...Outcome) *loopFixture {
	c := &loopFixture{outcomes: outcomes, ready: make(chan struct{})}
	start := time.Now()
	c.Loop = &Loop{
		Interval: time.Minute, Log: logr.Discard(),
		Run: func(context.Context) Result {
			c.at = append(c.at, time.Since(start))
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
		Started: func(context.Context) { c.calls = append(c.calls, "started") },
		Report:  func(_ context.Context, r Result) { c.reported = append(c.reported, r.Outcome) },
		Stopped: func(ctx context.Context) {
			if ctx.Err() == nil {
				c.calls = append(c.calls, "stopped")
			}
		},
	}
	return c
}

// runs runs the loop for a duration.
func (c *loopFixture) runs(t *testing.T, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	require.NoError(t, c.Start(ctx))
	assert.Equal(t, []string{"started", "stopped"}, c.calls, "Stopped gets a context that has not ended")
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
				f := newLoopFixture(c.outcomes...)
				close(f.ready)
				f.runs(t, 135*time.Second)
				for i := range c.want {
					c.want[i] *= time.Second
				}
				assert.Equal(t, c.want, f.at)
				assert.Len(t, f.reported, len(c.want))
			})
		})
	}
}

func TestFailureDoesNotExtendShortInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newLoopFixture(Failed)
		f.Interval = time.Second
		close(f.ready)
		f.runs(t, 4500*time.Millisecond)
		assert.Equal(t, []time.Duration{2 * time.Second, 3 * time.Second, 4 * time.Second}, f.at)
	})
}

func TestLoopWaitsForWebhooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newLoopFixture()
		go func() {
			time.Sleep(10 * time.Second)
			close(f.ready)
		}()
		f.runs(t, 30*time.Second)
		assert.Equal(t, []time.Duration{12 * time.Second}, f.at)
	})
	synctest.Test(t, func(t *testing.T) {
		f := newLoopFixture()
		f.runs(t, 90*time.Second)
		assert.Equal(t, []time.Duration{time.Minute}, f.at, "configurations that are never written must be reported")
	})
}

func TestCanceledRunIsNotReported(t *testing.T) {
	for name, d := range map[string]time.Duration{"before it is ready": time.Second, "before the first run": 11 * time.Second, "in a run": 13 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newLoopFixture()
				f.Run = func(ctx context.Context) Result {
					<-ctx.Done()
					return resultOf(Untried)
				}
				go func() {
					time.Sleep(10 * time.Second)
					close(f.ready)
				}()
				f.runs(t, d)
				assert.Empty(t, f.reported)
				time.Sleep(10 * time.Second) // let the goroutines of the bubble end
			})
		})
	}
}

func TestLoopRunsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newLoopFixture(Passed, Failed)
		close(f.ready)
		f.runs(t, 65*time.Second)
		f.calls = nil
		time.Sleep(35 * time.Second)
		f.runs(t, 65*time.Second)
		assert.Equal(t, []time.Duration{2 * time.Second, 62 * time.Second, 102 * time.Second, 162 * time.Second}, f.at)
		assert.Equal(t, []Outcome{Passed, Failed, Passed, Passed}, f.reported)
	})
}

func TestLoopNeedsLeaderElection(t *testing.T) {
	assert.True(t, new(Loop).NeedLeaderElection())
}
