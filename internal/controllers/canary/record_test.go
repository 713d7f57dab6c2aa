package canary

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
)

// assertMetrics requires exactly these metrics, apart from the duration.
func assertMetrics(t *testing.T, r *Record, want ...string) {
	t.Helper()
	var got []string
	for line := range strings.Lines(gathered(t, r)) {
		if !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "overrule_canary_duration_seconds") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	assert.ElementsMatch(t, want, got)
}

func TestMetrics(t *testing.T) {
	r := NewRecord(false)
	none := []string{`overrule_canary_runs_total{result="failed"} 0`, `overrule_canary_runs_total{result="passed"} 0`, `overrule_canary_runs_total{result="untried"} 0`}
	assertMetrics(t, r, none...)
	r.Begin()
	assertMetrics(t, r, none...)
	require.NoError(t, r.Problem())

	at := func(o Outcome, second int64) Result {
		out := newResult(api.Deny, []Attempt{{Sent: "a write", Response: "something", Outcome: o}})
		out.At, out.Took = time.UnixMilli(second*1000+500), time.Second
		return out
	}
	assert.Nil(t, r.Observe(at(Passed, 100)))
	assertMetrics(t, r, `overrule_canary_last_success_timestamp_seconds 100.5`, `overrule_canary_passing 1`,
		none[0], `overrule_canary_runs_total{result="passed"} 1`, none[2])
	require.NoError(t, r.Problem())

	assert.Equal(t, Passed, r.Observe(at(Failed, 200)).Outcome, "the previous one")
	require.EqualError(t, r.Problem(), "failed: a write: something")
	assert.Equal(t, Failed, r.Observe(at(Untried, 300)).Outcome)
	require.EqualError(t, r.Problem(), "untried: a write: something")
	runs := []string{`overrule_canary_runs_total{result="failed"} 1`, `overrule_canary_runs_total{result="passed"} 1`, `overrule_canary_runs_total{result="untried"} 1`}
	assertMetrics(t, r, append(runs, `overrule_canary_last_success_timestamp_seconds 100.5`, `overrule_canary_passing 0`)...)

	r.End()
	assertMetrics(t, r, runs...)
	require.NoError(t, r.Problem(), "this replica is no longer the leader")
}

func TestArmedMetricOfLeader(t *testing.T) {
	r := NewRecord(true)
	armed := func() float64 {
		if slices.Contains(strings.Split(gathered(t, r), "\n"), "overrule_armed 1") {
			return 1
		}
		assert.Contains(t, gathered(t, r), "\noverrule_armed 0\n")
		return 0
	}
	assert.Zero(t, armed())
	r.Begin()
	r.SetArmed(true)
	assert.InDelta(t, 1, armed(), 0)
	r.SetArmed(false)
	assert.Zero(t, armed())
	r.SetArmed(true)
	r.End()
	assert.Zero(t, armed())
	assert.NotContains(t, gathered(t, NewRecord(false)), "overrule_armed", "no metric without --arm")
}

// gathered returns the metrics of a record as text.
func gathered(t *testing.T, r *Record) string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(r))
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	require.Equal(t, http.StatusOK, answer.Code)
	return answer.Body.String()
}

func TestResultAsTextAndJSON(t *testing.T) {
	r := newResult(api.Warn, []Attempt{
		{Sent: "one", Response: "fine", Outcome: Passed, Milliseconds: 3},
		{Sent: "two", Response: "not called", Outcome: Failed, Milliseconds: 4},
		{Sent: "three", Response: "no right", Outcome: Untried},
	})
	r.Note = "a note"
	assert.Equal(t, Failed, r.Outcome)
	assert.Equal(t, "two: not called; three: no right", r.Message())
	assert.Equal(t, `passed   one (3 ms)
         fine
failed   two (4 ms)
         not called
untried  three (0 ms)
         no right
note     a note
the canary failed
`, r.Text())
	assert.Equal(t, Untried, newResult(api.Deny, []Attempt{{Outcome: Passed}, {Outcome: Untried}}).Outcome)
	assert.Contains(t, newResult(api.Deny, []Attempt{{Outcome: Untried}}).Text(), "the canary could not be tried\n")
	assert.Contains(t, newResult(api.Deny, nil).Text(), "the canary passed\n")
}
