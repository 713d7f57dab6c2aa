package webhook

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/coordination"
	"overrule.dev/overrule/internal/guard"
)

// fakeCoordinator returns places and answers in turn, the last one again and again.
type fakeCoordinator struct {
	places  []coordination.Place
	err     error // of Await, after the places
	checks  []error
	answers []coordination.Answer
	refused error // of Forward, before the answers
	excepts []coordination.Place
	accepts bool
	// until is the deadline of the last Await.
	until time.Time
}

func (f *fakeCoordinator) Await(ctx context.Context, _ time.Duration, except coordination.Place) (coordination.Place, error) {
	f.until, _ = ctx.Deadline()
	f.excepts = append(f.excepts, except)
	if len(f.places) == 0 {
		return coordination.Place{}, f.err
	}
	p := f.places[0]
	f.places = f.places[1:]
	return p, nil
}

func (f *fakeCoordinator) Check(coordination.Place, time.Duration) error {
	if len(f.checks) == 0 {
		return nil
	}
	err := f.checks[0]
	f.checks = f.checks[1:]
	return err
}

func (f *fakeCoordinator) Accepts(string) bool { return f.accepts }

func (f *fakeCoordinator) Forward(context.Context, coordination.Place, coordination.Review) (coordination.Answer, error) {
	if err := f.refused; err != nil {
		f.refused = nil
		return coordination.Answer{}, err
	}
	return f.answers[0], nil
}

var (
	here  = coordination.Place{Term: "1"}
	there = coordination.Place{Term: "2", Address: "10.0.0.1:9444"}
)

func TestWriteIsForwardedToTheLeader(t *testing.T) {
	c := &fakeCoordinator{
		places: []coordination.Place{there, there}, refused: coordination.ErrRefused,
		answers: []coordination.Answer{{Status: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte("{}")}},
	}
	d := withInFlight(t, Options{Coordinator: c}, cluster)
	w := d.post(t, PathValidate, review(t, create(t, routeLimits(1))))
	assert.Equal(t, http.StatusOK, w.Code)
	assert.Equal(t, "{}", w.Body.String())
	assert.Equal(t, []coordination.Place{{}, there}, c.excepts, "the place that refused is not asked again at once")
	assert.Zero(t, d.opts.InFlight.Len())

	c.places, c.answers = []coordination.Place{there}, []coordination.Answer{{Status: http.StatusServiceUnavailable, Header: http.Header{"Retry-After": {"1"}}}}
	w = d.post(t, PathValidate, review(t, create(t, routeLimits(1))))
	assert.Equal(t, http.StatusServiceUnavailable, w.Code)
	assert.Equal(t, "1", w.Header().Get("Retry-After"))
	assert.Equal(t, "close", w.Header().Get("Connection"))
}

// TestTermThatEndsMeanwhile: nothing that was evaluated in a term that is over is answered.
func TestTermThatEndsMeanwhile(t *testing.T) {
	c := &fakeCoordinator{
		places: []coordination.Place{here, here}, checks: []error{coordination.ErrNotLeading, coordination.ErrNotLeading}, // of the log, and before the response
	}
	d := withInFlight(t, Options{Coordinator: c}, cluster)
	assert.True(t, d.validated(t, create(t, strings.Replace(routeLimits(1), "name: toystore-limits", "name: toystore-limits, uid: u1", 1))).Allowed)
	assert.Equal(t, []coordination.Place{{}, here}, c.excepts)
	assert.Equal(t, 1, d.opts.InFlight.Len(), "it is in the log of the second term only")
}

// TestTooMuchIsAnsweredInAnyTerm: the client must not retry it, in whatever term.
func TestTooMuchIsAnsweredInAnyTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &fakeCoordinator{places: []coordination.Place{here}, checks: []error{coordination.ErrNotLeading}, err: coordination.ErrNoLeader}
		d := withInFlight(t, Options{Coordinator: c}, cluster)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, PathValidate+"?timeout=20ms", bytes.NewReader(review(t, create(t, routeLimits(1)))))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		d.handler(d.slow(), false).ServeHTTP(w, r)
		resp := responseOf(t, w)
		assert.Equal(t, int32(http.StatusForbidden), resp.Result.Code)
		assert.Equal(t, "TooMuch", resp.AuditAnnotations["denied"])
		assert.Empty(t, c.checks)
	})
}

func TestWriteWithoutLeader(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		status  int
		message string
	}{
		"no leader":      {coordination.ErrNoLeader, http.StatusOK, noLeaderMessage},
		"other protocol": {coordination.ErrProtocol, http.StatusServiceUnavailable, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := withInFlight(t, Options{Coordinator: &fakeCoordinator{err: c.err}}, cluster)
			w := d.post(t, PathValidate, review(t, create(t, routeLimits(1))))
			require.Equal(t, c.status, w.Code)
			if c.status == http.StatusOK {
				resp := responseOf(t, w)
				assert.Equal(t, int32(http.StatusTooManyRequests), resp.Result.Code)
				assert.Contains(t, resp.Result.Message, c.message)
			}
		})
	}
}

func TestWhatIsNotCoordinated(t *testing.T) {
	c := &fakeCoordinator{err: coordination.ErrNoLeader}
	d := withInFlight(t, Options{Coordinator: c}, cluster)
	dry := create(t, routeLimits(1))
	dry.DryRun = new(true)
	assert.True(t, d.validated(t, dry).Allowed)
	assert.True(t, d.mutated(t, create(t, routeLimits(1))).Allowed)
	warns := withInFlight(t, Options{Coordinator: c, Enforcement: guard.EnforceWarn}, cluster)
	assert.True(t, warns.validated(t, create(t, routeLimits(1))).Allowed)
	assert.Empty(t, c.excepts)
}

func TestForwardedReviewIsRefusedOutsideOfTheTerm(t *testing.T) {
	c := &fakeCoordinator{places: []coordination.Place{there}}
	d := withInFlight(t, Options{Coordinator: c}, cluster)
	send := func() int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/validate", bytes.NewReader(review(t, create(t, routeLimits(1)))))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		d.PeerHandler().ServeHTTP(w, r)
		return w.Code
	}
	assert.Equal(t, http.StatusMisdirectedRequest, send())
	assert.Empty(t, c.excepts)
	c.accepts = true
	assert.Equal(t, http.StatusMisdirectedRequest, send(), "it is not forwarded again")
	c.places = []coordination.Place{here}
	assert.Equal(t, http.StatusOK, send())
}

func TestExportAndImport(t *testing.T) {
	from := withInFlight(t, Options{Coordinator: &fakeCoordinator{places: []coordination.Place{here}}}, cluster)
	limit := create(t, strings.Replace(gatewayLimits, "name: gw-limits,", "name: gw-limits, uid: u1,", 1))
	require.True(t, from.validated(t, limit).Allowed)
	data, err := from.Export()
	require.NoError(t, err)

	to := withInFlight(t, Options{Coordinator: &fakeCoordinator{places: []coordination.Place{here}}}, cluster)
	require.NoError(t, to.Import(data))
	assert.Equal(t, 1, to.opts.InFlight.Len())
	assert.Contains(t, said(t, to.validated(t, create(t, routeLimits(100)))), "together with the pending write of RateLimitPolicy infra/gw-limits")
	again, err := to.Export()
	require.NoError(t, err)
	assert.NotEmpty(t, again)

	assert.ErrorContains(t, to.Import([]byte(`{`)), "decode: ")
	var invalid *reviewError
	assert.ErrorAs(t, to.Import([]byte(`[{"review":"e30="}]`)), &invalid)
	assert.Equal(t, 1, to.opts.InFlight.Len(), "an import that fails changes nothing")
}
