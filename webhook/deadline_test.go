package webhook

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/coordination"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/webhookconfig"
)

func TestCallTimeout(t *testing.T) {
	s := New(Options{Timeout: 7 * time.Second})
	for query, want := range map[string]time.Duration{
		"":                     7 * time.Second,
		"?timeout=":            7 * time.Second,
		"?timeout=soon":        7 * time.Second,
		"?timeout=10":          7 * time.Second,
		"?timeout=-1s":         7 * time.Second,
		"?timeout=0s":          7 * time.Second,
		"?timeout=10s":         10 * time.Second,
		"?timeout=1s":          time.Second,
		"?timeout=300ms":       300 * time.Millisecond,
		"?timeout=30s":         30 * time.Second,
		"?timeout=31s":         30 * time.Second,
		"?timeout=24h":         30 * time.Second,
		"?timeout=1s&timeout=": time.Second,
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, PathValidate+query, nil)
		assert.Equal(t, want, s.callTimeout(r), query)
	}
	assert.Equal(t, DefaultTimeout, New(Options{}).opts.Timeout)
}

// Whatever timeout a webhook has, its writes are evaluated in the time that fits, and the
// problem is reported while such calls arrive.
func TestTimeoutAboveTheLongest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bounds := coordination.NewBounds(DefaultTimeout, 0)
		f := &fakeCoordinator{places: []coordination.Place{here, here}}
		d := withInFlight(t, Options{Coordinator: f, MaxTimeout: bounds.MaxTimeout()}, cluster)
		d.opts.Now = time.Now
		send := func(timeout string) time.Duration {
			resp := responseOf(t, d.post(t, PathValidate+"?timeout="+timeout, review(t, create(t, routeLimits(1)))))
			assert.True(t, resp.Allowed)
			return time.Until(f.until)
		}
		assert.Equal(t, 2500*time.Millisecond, send("3s"))
		assert.NoError(t, d.TimeoutProblem())
		assert.Equal(t, 4*time.Second-4*time.Second/responsePart, send("30s"))
		assert.EqualError(t, d.TimeoutProblem(), "timeoutSeconds of a webhook is 30s, of which only 4s fit into --lease-duration and are used; "+
			"set timeoutSeconds to --webhook-timeout (3s), or increase --webhook-timeout")
		time.Sleep(longTimeoutReported + time.Second)
		assert.NoError(t, d.TimeoutProblem(), "it was corrected")
	})
	assert.Equal(t, webhookconfig.MaxTimeout, New(Options{MaxTimeout: time.Minute}).opts.MaxTimeout)
}

func TestReserves(t *testing.T) {
	for timeout, want := range map[time.Duration][2]time.Duration{
		300 * time.Millisecond: {150 * time.Millisecond, 150 * time.Millisecond},
		time.Second:            {500 * time.Millisecond, 500 * time.Millisecond},
		2 * time.Second:        {500 * time.Millisecond, time.Second},
		3 * time.Second:        {500 * time.Millisecond, time.Second},
		12 * time.Second:       {2 * time.Second, 4 * time.Second},
		30 * time.Second:       {5 * time.Second, 10 * time.Second},
	} {
		o := Options{}
		assert.Equal(t, want, [2]time.Duration{o.responseReserve(timeout), o.lateReserve(timeout)}, timeout)
	}
	o := Options{ResponseReserve: time.Second, LateReserve: 2 * time.Second}
	assert.Equal(t, time.Second, o.responseReserve(10*time.Second))
	assert.Equal(t, 2*time.Second, o.lateReserve(10*time.Second))
	assert.Equal(t, time.Second, o.lateReserve(2*time.Second), "half at most")
}

// The deadline of a review depends on what the API server does if the response is late.
func TestDeadline(t *testing.T) {
	route, service := api.PolicyKind{Group: "gateway.networking.k8s.io", Kind: "HTTPRoute"}, api.PolicyKind{Kind: "Service"}
	for name, c := range map[string]struct {
		kind    api.PolicyKind
		query   string
		options Options
		left    string // of a review that another replica forwarded
		want    time.Duration
	}{
		"a route":                    {kind: route, want: 2500 * time.Millisecond},
		"a Service":                  {kind: service, want: 2 * time.Second},
		"a Namespace":                {kind: api.PolicyKind{Kind: "Namespace"}, want: 2 * time.Second},
		"a definition":               {kind: policykind.KindDefinition, want: 2 * time.Second},
		"a route, by Ignore":         {kind: route, options: Options{IgnoreFailures: true}, want: 2 * time.Second},
		"a Service in a second":      {kind: service, query: "?timeout=1s", want: 500 * time.Millisecond},
		"the option":                 {kind: route, options: Options{Timeout: 12 * time.Second}, want: 10 * time.Second},
		"own reserves":               {kind: service, query: "?timeout=10s", options: Options{ResponseReserve: time.Second, LateReserve: 4 * time.Second}, want: 6 * time.Second},
		"a forwarded Service":        {kind: service, query: "?timeout=3s", left: "1000", want: 850 * time.Millisecond},
		"forwarded with little left": {kind: route, query: "?timeout=3s", left: "100", want: 0},
		"forwarded with too much":    {kind: route, query: "?timeout=3s", left: "60000", want: 2500 * time.Millisecond},
		"forwarded without a time":   {kind: route, query: "?timeout=3s", left: "soon", want: 2500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeCoordinator{accepts: true, err: coordination.ErrNoLeader}
				c.options.Coordinator = f
				d := withInFlight(t, c.options, cluster)
				r := create(t, routeLimits(1))
				r.Kind = metav1.GroupVersionKind{Group: c.kind.Group, Version: "v1", Kind: c.kind.Kind}
				request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, PathValidate+c.query, bytes.NewReader(review(t, r)))
				request.Header.Set("Content-Type", "application/json")
				handler := d.Handler()
				if c.left != "" {
					request.Header.Set(coordination.HeaderRemaining, c.left)
					handler = d.PeerHandler()
				}
				handler.ServeHTTP(httptest.NewRecorder(), request)
				assert.Equal(t, c.want, time.Until(f.until))
			})
		})
	}
}
