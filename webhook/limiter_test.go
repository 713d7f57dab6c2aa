package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/tables"
)

// tooMany is what is answered where there is too much to do.
func tooMany() *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{UID: uid, Result: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests,
		Message: "too many concurrent admission reviews; retry in 1s",
		Details: &metav1.StatusDetails{RetryAfterSeconds: 1},
	}}
}

// unpatchedResponse is what mutating answers where it does nothing.
func unpatchedResponse() *admissionv1.AdmissionResponse {
	return &admissionv1.AdmissionResponse{UID: uid, Allowed: true}
}

// clients call a server over TLS, each on a connection of its own.
type clients struct {
	*testing.T
	server *httptest.Server
}

func (d *testServer) listen(t *testing.T, b blocking) clients {
	t.Helper()
	s := httptest.NewUnstartedServer(d.Handler())
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS13}
	s.StartTLS()
	t.Cleanup(s.Close)
	t.Cleanup(b.end) // or a test that fails would wait for them
	return clients{t, s}
}

// end ends all that is blocked.
func (b blocking) end() {
	select {
	case <-b.free:
	default:
		close(b.free)
	}
}

// called is the answer to a call, or why there was none.
type called struct {
	*admissionv1.AdmissionResponse
	// last is set if the server closes the connection.
	last bool
	err  error
}

func (c clients) call(path string, body []byte) called {
	r, err := http.NewRequestWithContext(c.Context(), http.MethodPost, c.server.URL+path, bytes.NewReader(body))
	if err != nil {
		return called{err: err}
	}
	r.Header.Set("Content-Type", "application/json")
	w, err := c.server.Client().Do(r)
	if err != nil {
		return called{err: err}
	}
	text, err := io.ReadAll(w.Body)
	_ = w.Body.Close()
	if err != nil || w.StatusCode != http.StatusOK {
		return called{err: fmt.Errorf("%s %q: %w", w.Status, text, err)}
	}
	var review admissionv1.AdmissionReview
	err = json.Unmarshal(text, &review)
	return called{review.Response, w.Close, err}
}

// all makes calls at once and returns where their answers come.
func (c clients) all(n int, path string, body []byte) <-chan called {
	answers := make(chan called, n)
	for range n {
		go func() { answers <- c.call(path, body) }()
	}
	return answers
}

// settled waits for a number of reviews that are evaluated and that wait.
func (d *testServer) settled(t *testing.T, evaluated, waiting int) {
	t.Helper()
	require.Eventually(t, func() bool { return d.evaluated() == evaluated && d.limiter.waiting.Load() == int64(waiting) },
		time.Minute, time.Millisecond)
}

// evaluated counts the slots that are taken.
func (d *testServer) evaluated() int {
	for free := d.opts.MaxConcurrent; free > 0; free-- {
		if d.limiter.running.TryAcquire(int64(free)) {
			d.limiter.running.Release(int64(free))
			return d.opts.MaxConcurrent - free
		}
	}
	return d.opts.MaxConcurrent
}

func TestQueueIsLimited(t *testing.T) {
	b := newBlocking()
	d := newTestServer(t, Options{MaxConcurrent: 2, MaxQueue: 3, Guard: &guard.Guard{ReadLive: b.live}}, cluster)
	c := d.listen(t, b)
	body := review(t, create(t, homeless()))
	require.NoError(t, c.call(PathMutate, body).err) // what stays for good is there from now on
	before := runtime.NumGoroutine()

	first := c.all(5, PathValidate+"?timeout=30s", body)
	<-b.asked
	<-b.asked
	d.settled(t, 2, 3)
	for range 3 { // waves
		rest := c.all(100, PathValidate+"?timeout=30s", body)
		for range 100 {
			a := <-rest
			require.NoError(t, a.err)
			require.Equal(t, tooMany(), a.AdmissionResponse)
		}
	}
	d.settled(t, 2, 3)
	assert.Empty(t, first, "no waiting review is answered before its time")
	d.counted(t, "overrule_reviews_waiting", `
# TYPE overrule_reviews_waiting gauge
overrule_reviews_waiting 3
`)

	close(b.free)
	for range 5 {
		a := <-first
		require.NoError(t, a.err)
		assert.True(t, a.Allowed, "what waited is evaluated")
	}
	d.settled(t, 0, 0)
	c.server.Client().CloseIdleConnections()
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before }, time.Minute, time.Millisecond,
		"nothing of it is left")
}

func TestStuckEvaluationKeepsItsSlot(t *testing.T) {
	b := newBlocking()
	d := newTestServer(t, Options{MaxConcurrent: 2, MaxBytes: 2 * minWeight, Guard: &guard.Guard{ReadLive: b.live}}, cluster)
	c := d.listen(t, b)
	stuck := c.call(PathValidate+"?timeout=1s", review(t, create(t, homeless())))
	require.NoError(t, stuck.err)
	assert.Equal(t, int32(http.StatusForbidden), stuck.Result.Code)
	d.settled(t, 1, 0)

	fine := review(t, create(t, routeLimits(20)))
	for range 5 {
		assert.True(t, c.call(PathValidate, fine).Allowed, "there is another slot")
	}
	stuck = c.call(PathValidate+"?timeout=1s", review(t, create(t, homeless())))
	assert.Equal(t, int32(http.StatusForbidden), stuck.Result.Code)
	assert.Equal(t, unpatchedResponse(), c.call(PathMutate+"?timeout=10ms", fine).AdmissionResponse, "it leaves the write to validating")
	rest := c.all(50, PathValidate+"?timeout=10ms", fine)
	for range 50 {
		a := <-rest
		require.NoError(t, a.err)
		assert.Equal(t, tooMany(), a.AdmissionResponse, "there is none, and no room, either")
	}
	assert.False(t, d.limiter.memory.TryAcquire(1))
	d.settled(t, 2, 0)
}

func TestQueuedReviewUsesCurrentView(t *testing.T) {
	for name, c := range map[string]struct {
		before    string
		meanwhile func(*testing.T, *testServer)
		denied    bool
	}{
		"nothing happens": {cluster, func(*testing.T, *testServer) {}, false},
		"a policy comes":  {cluster, func(t *testing.T, d *testServer) { t.Helper(); addObjects(t, d.opts.Store, gatewayLimits) }, true},
		"its kind is relisted, and not known for a moment": {cluster + "\n---\n" + gatewayLimits, func(_ *testing.T, d *testServer) {
			v, _ := d.opts.Store.View()
			d.opts.Store.AddKind(v.Kind(api.PolicyKind{Group: "kuadrant.io", Kind: "RateLimitPolicy"}))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBlocking()
			d := newTestServer(t, Options{MaxConcurrent: 1, Guard: &guard.Guard{ReadLive: b.live}}, c.before)
			s := d.listen(t, b)
			first := s.all(1, PathValidate+"?timeout=30s", review(t, create(t, homeless())))
			<-b.asked
			second := s.all(1, PathValidate+"?timeout=30s", review(t, create(t, routeLimits(100))))
			d.settled(t, 1, 1)
			c.meanwhile(t, d)
			close(b.free)
			assert.True(t, (<-first).Allowed)
			assert.Equal(t, c.denied, !(<-second).Allowed)
		})
	}
}

func TestDrainAnswersQueuedReviews(t *testing.T) {
	b := newBlocking()
	d := newTestServer(t, Options{MaxConcurrent: 1, MaxQueue: 1, Guard: &guard.Guard{ReadLive: b.live}}, cluster)
	c := d.listen(t, b)
	waiting := c.all(2, PathValidate+"?timeout=30s", review(t, create(t, homeless())))
	<-b.asked
	d.settled(t, 1, 1)
	d.Drain()
	away := c.call(PathValidate, review(t, create(t, routeLimits(20))))
	require.NoError(t, away.err)
	assert.Equal(t, tooMany(), away.AdmissionResponse)
	assert.True(t, away.last)
	close(b.free)
	for range 2 {
		a := <-waiting
		require.NoError(t, a.err)
		assert.True(t, a.Allowed)
		assert.True(t, a.last, "though it came before")
	}
}

// counting is a body that counts what is read of it.
type counting struct {
	io.Reader
	read int
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.read += n
	return n, err
}

func TestReviewWithoutMemoryIsNotRead(t *testing.T) {
	large := review(t, create(t, routeLimits(20)))
	large = append(large, bytes.Repeat([]byte(" "), 1<<20)...)
	for name, c := range map[string]struct {
		enforcement guard.Enforcement
		path        string
		body        []byte
		length      int64
		want        *admissionv1.AdmissionResponse
	}{
		"with 429 where it is to be decided": {path: PathValidate, body: large, want: tooMany()},
		"by leaving it to validating":        {path: PathMutate, body: large, want: unpatchedResponse()},
		"also if its length is unknown":      {path: PathValidate, body: large, length: unknownLength, want: tooMany()},
		"with a warning where nothing is denied": {
			enforcement: guard.EnforceWarn, path: PathValidate, body: large,
			want: &admissionv1.AdmissionResponse{
				UID: uid, Allowed: true, Warnings: []string{"would be denied: " + overloadMessage},
				AuditAnnotations: map[string]string{"denied": "Overloaded"},
			},
		},
		"with 503 where its uid is far away": {path: PathValidate, body: append(bytes.Repeat([]byte(" "), maxUIDOffset), large...)},
		"with 503 where there is none":       {path: PathMutate, body: []byte(`{"request": {"uid": ""}}`)},
	} {
		t.Run(name, func(t *testing.T) {
			d := newTestServer(t, Options{Enforcement: c.enforcement, MaxBytes: 1 << 20}, cluster)
			require.True(t, d.limiter.memory.TryAcquire(1<<20))
			body := &counting{Reader: bytes.NewReader(c.body)}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, c.path+"?timeout=2ms", body)
			r.Header.Set("Content-Type", "application/json")
			r.ContentLength = int64(len(c.body))
			if c.length != 0 {
				r.ContentLength = c.length
			}
			w := httptest.NewRecorder()
			d.Handler().ServeHTTP(w, r)

			assert.LessOrEqual(t, body.read, maxUIDOffset)
			assert.Zero(t, d.limiter.waiting.Load())
			d.counted(t, "overrule_requests_rejected_total", fmt.Sprintf(`
# TYPE overrule_requests_rejected_total counter
overrule_requests_rejected_total{reason="overloaded",webhook=%q} 1
`, strings.TrimPrefix(c.path, "/")))
			if c.want == nil {
				assert.Equal(t, http.StatusServiceUnavailable, w.Code)
				assert.Equal(t, "1", w.Header().Get("Retry-After"))
				assert.Equal(t, "close", w.Header().Get("Connection"))
				assert.Equal(t, overloadMessage+"\n", w.Body.String())
				return
			}
			assert.Equal(t, c.want, responseOf(t, w))
		})
	}
}

func TestReviewsWaitForMemory(t *testing.T) {
	b := newBlocking()
	d := newTestServer(t, Options{MaxConcurrent: 10, MaxBytes: 2 << 20, Guard: &guard.Guard{ReadLive: b.live}}, cluster)
	c := d.listen(t, b)
	large := append(review(t, create(t, homeless())), bytes.Repeat([]byte(" "), 1<<19)...)
	first := c.all(3, PathValidate+"?timeout=30s", large)
	for range 3 {
		<-b.asked
	}
	more := c.all(3, PathValidate+"?timeout=30s", large)
	d.settled(t, 3, 3) // although there are ten places
	a := c.call(PathValidate+"?timeout=10ms", large)
	require.NoError(t, a.err)
	assert.Equal(t, tooMany(), a.AdmissionResponse, "the connection outlives an answer before the end of the body")
	close(b.free)
	for range 3 {
		assert.True(t, (<-first).Allowed)
		assert.True(t, (<-more).Allowed)
	}
	d.settled(t, 0, 0)
	require.Eventually(t, func() bool { return d.limiter.memory.TryAcquire(2 << 20) }, time.Minute, time.Millisecond, "all of it is back")
}

func TestReviewWeight(t *testing.T) {
	for name, c := range map[string]struct {
		room, length, want int64
	}{
		"is its length": {DefaultMaxBytes, 100 << 10, 100 << 10},
		"is what it takes besides where it is short":   {DefaultMaxBytes, 10, minWeight},
		"is that of the largest where it is not known": {DefaultMaxBytes, unknownLength, DefaultBodyLimit},
		"is that of the largest where it is larger":    {DefaultMaxBytes, 1 << 40, DefaultBodyLimit},
		"is at most what there is":                     {1 << 20, 2 << 20, 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			d := newTestServer(t, Options{MaxBytes: c.room})
			l, ok := d.limiter.reserve(t.Context(), c.length)
			require.True(t, ok)
			assert.Equal(t, c.want, l.weight)
			l.release()
			assert.True(t, d.limiter.memory.TryAcquire(c.room))
		})
	}
}

// Large reviews wait for one another, and small ones for none of them.
func TestLargeReviewsShareMemory(t *testing.T) {
	d := newTestServer(t, Options{MaxConcurrent: 10})
	g := d.limiter
	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.True(t, g.acquire(t.Context(), maxLargeReviewBytes/2))
	require.True(t, g.acquire(t.Context(), maxLargeReviewBytes/2))
	require.False(t, g.acquire(soon, largeReview+1))
	require.True(t, g.acquire(t.Context(), largeReview), "small")
	g.release(maxLargeReviewBytes / 2)
	require.True(t, g.acquire(t.Context(), maxLargeReviewBytes/2))
	g.release(maxLargeReviewBytes / 2)
	g.release(maxLargeReviewBytes / 2)
	require.True(t, g.acquire(t.Context(), 100*maxLargeReviewBytes), "the largest alone")
	require.Equal(t, 2, d.evaluated())
}

func TestUIDOfReview(t *testing.T) {
	for name, c := range tables.Read[map[string]struct {
		Body, Want string
	}](t, "testdata/tables/uids.yaml") {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.Want, string(uidOfReview(strings.NewReader(c.Body))))
		})
	}
}

// A body that never comes would hold its room for as long as its sender likes.
func TestSlowBodyTimesOut(t *testing.T) {
	d := newTestServer(t, Options{MaxBytes: minWeight}, cluster)
	c := d.listen(t, newBlocking())
	conn, err := (&tls.Dialer{Config: c.server.Client().Transport.(*http.Transport).TLSClientConfig}).
		DialContext(t.Context(), "tcp", c.server.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "POST %s?timeout=10ms HTTP/1.1\r\nHost: example.com\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{", PathValidate)
	require.NoError(t, err)
	text, err := io.ReadAll(conn) // the server ends it
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(string(text), "HTTP/1.1 400 Bad Request\r\n"), string(text))
	assert.Contains(t, string(text), "cannot read request body: ")
	assert.True(t, c.call(PathValidate, review(t, create(t, routeLimits(20)))).Allowed, "the room is free again")
}

// deadlines is a connection's writer that books until when it is read.
type deadlines struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.set = append(d.set, t)
	return nil
}

// The deadline of a body that is read already would end the call when it passes.
func TestReadDeadlineIsCleared(t *testing.T) {
	d := newTestServer(t, Options{}, cluster)
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, PathValidate, bytes.NewReader(review(t, create(t, routeLimits(20)))))
	r.Header.Set("Content-Type", "application/json")
	d.Handler().ServeHTTP(w, r)
	assert.True(t, responseOf(t, w.ResponseRecorder).Allowed)
	require.Len(t, w.set, 2)
	assert.False(t, w.set[0].IsZero())
	assert.True(t, w.set[1].IsZero())
}

func TestLateReviewIsOverloadNotTooMuch(t *testing.T) {
	for name, c := range map[string]struct {
		waited   time.Duration
		endpoint func(*testServer) endpoint
		want     string
	}{
		"it is evaluated for as long as it waited, and more": {0, (*testServer).slow, "TooMuch"},
		"it waited for longer than it is evaluated":          {time.Hour, (*testServer).slow, "Overloaded"},
		"a verdict in time stands":                           {time.Hour, (*testServer).quick, "ConstraintViolated"},
		"mutating patches nothing":                           {time.Hour, (*testServer).mutating, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newTestServer(t, Options{}, cluster)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
				defer cancel()
				l, ok := d.limiter.reserve(ctx, 1)
				require.True(t, ok)
				l.arrived = l.arrived.Add(-c.waited)
				v, _ := d.opts.Store.View()
				a := (&call{Server: d.Server, endpoint: c.endpoint(d), request: create(t, route), reserved: l, slots: d.limiter.slots}).admit(ctx, v)
				assert.Equal(t, c.want, a.reason)
				assert.Equal(t, c.want == "", a.Allowed)
				assert.Equal(t, c.want == "Overloaded", a.retry)
			})
		})
	}
}

func (d *testServer) slow() endpoint {
	return endpoint{webhookValidate, spanEvaluate, func(ctx context.Context, _ *call, _ *snapshot.View) response {
		<-ctx.Done()
		return d.denyFailed(string(api.ReasonTooMuch), "no time")
	}, d.denyFailed, d.denyOverloaded}
}

func (d *testServer) quick() endpoint {
	return endpoint{webhookValidate, spanEvaluate, func(context.Context, *call, *snapshot.View) response {
		return d.denyFailed("ConstraintViolated", "no")
	}, d.denyFailed, d.denyOverloaded}
}

func (d *testServer) mutating() endpoint {
	return endpoint{webhookMutate, spanAnnotate, func(ctx context.Context, _ *call, _ *snapshot.View) response {
		<-ctx.Done()
		return allow()
	}, allowOnFailure, allow}
}
