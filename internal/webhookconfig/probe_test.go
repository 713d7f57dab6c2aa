package webhookconfig

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"overrule.dev/overrule/test/logbuffer"
)

// roundTripper is an API server without a network.
type roundTripper func(*http.Request) *http.Response

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

// statusOf is an error as the API server returns it.
func statusOf(code int, message string) func(*http.Request) *http.Response {
	return func(*http.Request) *http.Response {
		w := httptest.NewRecorder()
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":`+strconv.Itoa(code)+`,"message":"`+message+`"}`)
		return w.Result()
	}
}

const (
	denial  = `admission webhook \"review.overrule.dev\" denied the request: Invalid: spec.object.kind: Required value`
	failure = `Internal error occurred: failed calling webhook \"review.overrule.dev\": failed to call webhook: Post \"https://overrule.overrule-system.svc:443/review/0123456789abcdef0123456789abcdef?timeout=3s\": context deadline exceeded`
)

// newProbe returns a probe of an API server that gives one answer.
func newProbe(t *testing.T, answer *atomic.Pointer[func(*http.Request) *http.Response]) (*Probe, *logbuffer.Buffer) {
	t.Helper()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "https://api", Transport: roundTripper(func(r *http.Request) *http.Response { return (*answer.Load())(r) })})
	require.NoError(t, err)
	log := &logbuffer.Buffer{}
	return NewProbe(client, "overrule-system", 3*time.Second, log.Logger()), log
}

func isReached(p *Probe) bool {
	select {
	case <-p.Reached():
		return true
	default:
		return false
	}
}

func TestProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answer atomic.Pointer[func(*http.Request) *http.Response]
		says := func(code int, message string) { answer.Store(new(statusOf(code, message))) } //nolint:bodyclose // a message has no body
		says(500, failure)
		p, log := newProbe(t, &answer)
		go func() { assert.NoError(t, p.Start(t.Context())) }()
		time.Sleep(time.Second)
		assert.NoError(t, p.Problem(), "the first failures are those of a start")
		time.Sleep(time.Minute)
		assert.False(t, isReached(p))
		require.ErrorContains(t, p.Problem(), "the API server does not reach the webhooks: ")
		require.ErrorContains(t, p.Problem(), "context deadline exceeded")
		assert.NotContains(t, p.Problem().Error()+log.String(), "0123456789abcdef", "the token of the path")

		says(403, denial)
		time.Sleep(2 * probeRetry)
		assert.True(t, isReached(p))
		assert.NoError(t, p.Problem())

		says(500, failure)
		time.Sleep(2 * probeInterval)
		assert.Error(t, p.Problem(), "it goes on")
		assert.True(t, isReached(p), "once")
		says(403, denial)
		time.Sleep(2 * probeRetry)
		assert.NoError(t, p.Problem())
	})
}

func TestOnlyTheDenialOfTheWebhookIsAnAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		code    int
		message string
		want    bool
	}{
		"the denial":                {403, denial, true},
		"a failed call":             {500, failure, false},
		"no right":                  {403, `effectivepolicyreviews.overrule.dev is forbidden: User \"a\" cannot create resource`, false},
		"another webhook":           {403, `admission webhook \"other.example.com\" denied the request: no`, false},
		"the policy of the reviews": {403, `effectivepolicyreviews.overrule.dev \"overrule-probe\" is forbidden: Overrule did not answer`, false},
		"the schema":                {422, "spec.object.kind: Required value", false},
		"success":                   {201, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			var asked *http.Request
			var body []byte
			f := func(r *http.Request) *http.Response {
				asked = r
				body, _ = io.ReadAll(r.Body)
				return statusOf(c.code, c.message)(r)
			}
			var answer atomic.Pointer[func(*http.Request) *http.Response]
			answer.Store(&f)
			p, _ := newProbe(t, &answer)
			assert.Equal(t, c.want, p.probe(t.Context()) == nil)
			assert.Equal(t, "/apis/overrule.dev/v1alpha1/namespaces/overrule-system/effectivepolicyreviews", asked.URL.Path)
			assert.Equal(t, "All", asked.URL.Query().Get("dryRun"))
			assert.JSONEq(t, `{"apiVersion":"overrule.dev/v1alpha1","kind":"EffectivePolicyReview","metadata":{"name":"overrule-probe"},"spec":{"object":{}}}`, string(body))
		})
	}
}

const (
	fail   = admissionregistrationv1.Fail
	ignore = admissionregistrationv1.Ignore
)

// unreached has a Reconciler wait until reached is closed.
func unreached(reached chan struct{}) func(*Reconciler) {
	return func(r *Reconciler) {
		r.Reached, r.Configuration.FailurePolicy, r.Repairs = reached, fail, newRepairs()
	}
}

// failurePolicies returns those of all webhooks, the mutating ones first.
func failurePolicies(t *testing.T, o *harness) (out []admissionregistrationv1.FailurePolicyType) {
	t.Helper()
	m, err := o.api.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(t.Context(), "overrule", metav1.GetOptions{})
	require.NoError(t, err)
	for _, h := range m.Webhooks {
		out = append(out, *h.FailurePolicy)
	}
	for _, h := range o.webhooks(t) {
		out = append(out, *h.FailurePolicy)
	}
	return out
}

// The webhooks of reviews, and of writes that must never be blocked, do not change.
var (
	whenReached = []admissionregistrationv1.FailurePolicyType{fail, fail, fail, ignore, ignore, ignore, ignore, fail}
	untilThen   = []admissionregistrationv1.FailurePolicyType{ignore, fail, ignore, ignore, ignore, ignore, ignore, ignore}
)

// A firewall of a private cluster must not stop all writes.
func TestFailIsRegisteredOnceReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reached := make(chan struct{})
		o := startReconciler(t, "first", unreached(reached))
		time.Sleep(3 * resyncInterval)
		assert.Equal(t, untilThen, failurePolicies(t, o))
		close(reached)
		time.Sleep(resyncInterval)
		synctest.Wait()
		assert.Equal(t, whenReached, failurePolicies(t, o))
		assert.Equal(t, []float64{0, 0}, o.repairs())

		o.remove(t, typeValidating)
		assert.Equal(t, whenReached, failurePolicies(t, o), "it knows by now")
	})
}

// A new leader leaves no gap in enforcement.
func TestFailStaysForTheNextLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reached := make(chan struct{})
		close(reached)
		o := startReconciler(t, "first", unreached(reached))
		o.stop()
		o.Reached = make(chan struct{}) // of another process
		o.authority.rotate("second")
		o.start(t)
		assert.Equal(t, "second", string(o.validating(t).ClientConfig.CABundle))
		assert.Equal(t, whenReached, failurePolicies(t, o))
		o.stop()

		o.Configuration.Service = "new"
		o.start(t)
		assert.Equal(t, untilThen, failurePolicies(t, o), "another Service was not reached yet")
	})
}

func TestIgnoreStaysIgnore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reached := make(chan struct{})
		close(reached)
		o := startReconciler(t, "first", unreached(reached), func(r *Reconciler) { r.Configuration.FailurePolicy = ignore })
		assert.Equal(t, untilThen, failurePolicies(t, o))
	})
}
