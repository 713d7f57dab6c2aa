package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
)

// verdicts are writes on the cluster, the gateway's two policies in force.
var verdicts = map[string]struct {
	request  func(t *testing.T) *admissionv1.AdmissionRequest
	denied   []string   // the code, and what the message names; nil if allowed
	warnings [][]string // what each warning names
}{
	"a policy that complies": {
		request: func(t *testing.T) *admissionv1.AdmissionRequest { return create(t, routeLimits(20)) },
	},
	"one that breaks a constraint is denied, with the value, the limit and the owner": {
		request: func(t *testing.T) *admissionv1.AdmissionRequest { return create(t, routeLimits(100)) },
		denied: []string{
			"ConstraintViolated", "limits.login", `{"rates":[{"limit":100,"window":"10s"}]}`, "RateLimitPolicy infra/gw-limits", "Gateway infra/edge",
			"spec.limits.login.rates.exists(r, r.limit > 50)", `{"rates":[{"limit":50,"window":"10s"}]}`,
		},
	},
	"a rule that an override replaces returns a warning": {
		request: func(t *testing.T) *admissionv1.AdmissionRequest {
			return create(t, routeAuth("rules: {authentication: {sso: {issuer: mine}}}"))
		},
		warnings: [][]string{{"rules.authentication.sso", "AuthPolicy infra/gw-auth", "Gateway infra/edge"}},
	},
	"a policy that cannot be read is denied, with all that is wrong": {
		request: func(t *testing.T) *admissionv1.AdmissionRequest {
			return create(t, routeAuth("overrides: {when: '1 +', rules: {authentication: x}}"))
		},
		denied: []string{"Invalid", "AuthPolicy app/toystore-auth", "spec.overrides.when", "spec.overrides.rules"},
	},
}

func TestVerdicts(t *testing.T) {
	for name, c := range verdicts {
		t.Run(name, func(t *testing.T) {
			d := newTestServer(t, Options{}, cluster, gatewayAuth, gatewayLimits)
			a := d.validated(t, c.request(t))
			if c.denied == nil {
				require.True(t, a.Allowed, a.Result)
				assert.Nil(t, a.Result)
			} else {
				assert.True(t, strings.HasPrefix(said(t, a), c.denied[0]+": "), a.Result.Message)
				assertNames(t, a.Result.Message, c.denied[1:])
				assert.Equal(t, int32(http.StatusForbidden), a.Result.Code)
				assert.Equal(t, c.denied[0], a.AuditAnnotations["denied"])
			}
			require.Len(t, a.Warnings, len(c.warnings), a.Warnings)
			for i, names := range c.warnings {
				assertNames(t, a.Warnings[i], names)
			}
			assert.Nil(t, a.Patch, "validating patches nothing")

			d = newTestServer(t, Options{Enforcement: guard.EnforceWarn}, cluster, gatewayAuth, gatewayLimits)
			warned := d.validated(t, c.request(t))
			d = newTestServer(t, Options{Enforcement: guard.EnforceAudit}, cluster, gatewayAuth, gatewayLimits)
			audited := d.validated(t, c.request(t))
			for _, e := range []*admissionv1.AdmissionResponse{warned, audited} {
				assert.True(t, e.Allowed)
				assert.Nil(t, e.Result)
			}
			assert.Empty(t, audited.Warnings)
			assert.NotContains(t, audited.AuditAnnotations, "denied", "it was not")
			if c.denied == nil {
				assert.Len(t, warned.Warnings, len(c.warnings))
				assert.NotContains(t, audited.AuditAnnotations, "would-deny")
				return
			}
			assert.Equal(t, c.denied[0], warned.AuditAnnotations["denied"])
			assert.True(t, strings.HasPrefix(warned.Warnings[0], "would be denied: "), warned.Warnings[0])
			assert.Equal(t, c.denied[0], audited.AuditAnnotations["would-deny"])
		})
	}
}

func TestDenialIsCompleteWarningIsLimited(t *testing.T) {
	unset := make([]string, 30)
	for i := range unset {
		unset[i] = fmt.Sprintf("rules.authentication.rule-number-%02d", i)
	}
	rules := strings.ReplaceAll(strings.Join(unset, ": {}, "), "rules.authentication.", "") + ": {}"
	gw := strings.Replace(gatewayAuth, "{sso: {issuer: ours}}", "{"+rules+"}", 1)
	spec := "unset: [" + strings.Join(unset, ", ") + "]\nrules: {authorization: {key: {}}}"

	d := newTestServer(t, Options{}, cluster, gw)
	message := said(t, d.validated(t, create(t, routeAuth(spec))))
	lines := strings.Split(message, "\n")
	require.Len(t, lines, 30)
	for i, line := range lines {
		assertNames(t, line, []string{"UnsetOverride: ", unset[i] + " ", "AuthPolicy infra/gw-auth"})
	}

	d = newTestServer(t, Options{Enforcement: guard.EnforceWarn}, cluster, gw)
	a := d.validated(t, create(t, routeAuth(spec)))
	require.Len(t, a.Warnings, 11)
	assertNames(t, a.Warnings[10], []string{"20 more", "kubectl overrule check -f"})
	assert.Equal(t, "UnsetOverride", a.AuditAnnotations["denied"], "each code once")
}

func TestDenialIsPrintable(t *testing.T) {
	gw := strings.Replace(gatewayLimits, "r.limit > 50)", "r.limit > 50)\\n  && \\\"\x1b[2J\\u202e\\\" != \\\"\\\"", 1)
	gw = strings.Replace(strings.Replace(gw, "when: ", `when: "`, 1), `!= \"\"`, `!= \"\""`, 1)
	gw = strings.ReplaceAll(gw, "\x1b", `\e`)
	d := newTestServer(t, Options{}, cluster, gw)
	message := said(t, d.validated(t, create(t, routeLimits(100))))
	assert.NotContains(t, message, "\x1b")
	assert.NotContains(t, message, "\u202e")
	assert.NotContains(t, message, "\n", "one finding, one line")
	assert.Contains(t, message, "r.limit > 50)   && ")
}

func TestNotSyncedIsUnavailable(t *testing.T) {
	s := snapshot.New("gateways", "routes")
	d := newTestServer(t, Options{Store: s}, cluster, gatewayLimits)
	s.Listed("routes")
	for _, path := range []string{PathValidate, PathMutate} {
		w := d.post(t, path, review(t, create(t, routeLimits(20))))
		assert.Equal(t, http.StatusServiceUnavailable, w.Code)
		assert.Equal(t, "1", w.Header().Get("Retry-After"))
		assert.Equal(t, "close", w.Header().Get("Connection"))
		assert.Equal(t, "overrule is not ready: cache not synced or stale; see /readyz\n", w.Body.String())
	}
	assert.Contains(t, d.log.String(), `"cause"="not listed yet: [gateways]"`)

	s.Listed("gateways")
	w := d.post(t, PathValidate, review(t, create(t, routeLimits(100))))
	assert.Empty(t, w.Header().Get("Connection"))
	said(t, responseOf(t, w))
}

func TestPendingKindBlocksOnlyItself(t *testing.T) {
	d := newTestServer(t, Options{}, cluster, gatewayAuth, gatewayLimits)
	v, _ := d.opts.Store.View()
	auth := v.Kind(api.PolicyKind{Group: "kuadrant.io", Kind: "AuthPolicy"})
	d.opts.Store.AddKind(auth) // it is relisted

	w := d.post(t, PathValidate, review(t, create(t, routeAuth("rules: {authentication: {a: {}}}"))))
	assert.Equal(t, http.StatusServiceUnavailable, w.Code)
	assert.Equal(t, "1", w.Header().Get("Retry-After"))
	said(t, d.validated(t, create(t, routeLimits(100))))
	assert.True(t, d.validated(t, create(t, route)).Allowed)

	d.opts.Store.KindListed(auth.Ref())
	assert.True(t, d.validated(t, create(t, routeAuth("rules: {authentication: {a: {}}}"))).Allowed)
}

func TestRemovedKindIsAllowed(t *testing.T) {
	d := newTestServer(t, Options{}, cluster, gatewayAuth, gatewayLimits)
	d.opts.Store.RemoveKind(api.PolicyKind{Group: "kuadrant.io", Kind: "RateLimitPolicy"})
	assert.True(t, d.validated(t, create(t, routeLimits(100))).Allowed)
	assert.True(t, d.validated(t, remove(t, gatewayLimits)).Allowed)
	assert.NotEmpty(t, d.validated(t, create(t, routeAuth("rules: {authentication: {sso: {}}}"))).Warnings)
}

// blocking is a Live that signals its call and then waits.
type blocking struct{ asked, free chan struct{} }

func newBlocking() blocking { return blocking{make(chan struct{}, 100), make(chan struct{})} }

func (b blocking) live(context.Context, api.Ref) (snapshot.Object, error) {
	b.asked <- struct{}{}
	<-b.free
	return nil, nil
}

// homeless is a policy whose target is looked for live.
func homeless() string {
	return strings.Replace(routeLimits(100), "name: toystore}", "name: nothing}", 1)
}

func panicking(context.Context, api.Ref) (snapshot.Object, error) {
	var none []snapshot.Object
	return none[len(none)], nil
}

func TestPanicIsDenied(t *testing.T) {
	d := newTestServer(t, Options{MaxConcurrent: 1, Guard: &guard.Guard{ReadLive: panicking}}, cluster)
	for range 3 { // more than there are places
		a := d.validated(t, create(t, homeless()))
		assert.Equal(t, "internal error: evaluation panicked; see the server log (uid "+string(uid)+")", said(t, a))
		assert.Equal(t, int32(http.StatusForbidden), a.Result.Code)
	}
	assert.True(t, d.validated(t, create(t, routeLimits(20))).Allowed, "it goes on")
	assert.Contains(t, d.log.String(), "index out of range [0] with length 0")

	d = newTestServer(t, Options{Enforcement: guard.EnforceWarn, Guard: &guard.Guard{ReadLive: panicking}}, cluster)
	a := d.validated(t, create(t, homeless()))
	assert.True(t, a.Allowed)
	require.Len(t, a.Warnings, 1)
	assert.True(t, strings.HasPrefix(a.Warnings[0], "would be denied: internal error"), a.Warnings[0])
}

func TestPanicInMutateIsAllowed(t *testing.T) {
	d := newTestServer(t, Options{MaxConcurrent: 1}, cluster, gatewayAuth)
	d.opts.Guard.Engine = nil
	for range 2 {
		a := d.mutated(t, create(t, route))
		assert.Equal(t, &admissionv1.AdmissionResponse{UID: uid, Allowed: true}, a)
	}
	said(t, d.validated(t, create(t, route)))
}

func TestFailedLiveReadIsDenied(t *testing.T) {
	refused := func(context.Context, api.Ref) (snapshot.Object, error) { return nil, errors.New("connection refused") }
	d := newTestServer(t, Options{Guard: &guard.Guard{ReadLive: refused}}, cluster)
	assertNames(t, said(t, d.validated(t, create(t, homeless()))), []string{"get HTTPRoute app/nothing: connection refused", "; retry"})
}

func TestLiveReadFindsTarget(t *testing.T) {
	s := snapshot.New()
	addObjects(t, s, strings.Replace(route, "name: toystore", "name: nothing", 1))
	v, _ := s.View()
	looks := 0
	live := func(_ context.Context, ref api.Ref) (snapshot.Object, error) {
		looks++
		return v.Get(ref), nil
	}
	d := newTestServer(t, Options{Guard: &guard.Guard{ReadLive: live}}, cluster, gatewayLimits)
	assert.Contains(t, said(t, d.validated(t, create(t, homeless()))), "ConstraintViolated: ")
	assert.Equal(t, 1, looks)
}

func TestEvaluationDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBlocking()
		d := newTestServer(t, Options{MaxConcurrent: 1, Guard: &guard.Guard{ReadLive: b.live}}, cluster)
		a := responseOf(t, d.post(t, PathValidate+"?timeout=10ms", review(t, create(t, homeless()))))
		assert.Equal(t, fmt.Sprintf("TooMuch: evaluation of CREATE of RateLimitPolicy app/toystore-limits (%d bytes) exceeds the webhook timeout; "+
			"reduce the object (fewer rules, listeners, targets or conditions), or contact the cluster administrator", len(toJSON(t, homeless()))), said(t, a))

		again := responseOf(t, d.post(t, PathValidate+"?timeout=10ms", review(t, create(t, routeLimits(20)))))
		require.NotNil(t, again.Result)
		assert.Equal(t, int32(http.StatusTooManyRequests), again.Result.Code, "it keeps its slot until it ends")
		close(b.free)
		assert.True(t, d.validated(t, create(t, routeLimits(20))).Allowed)
	})
}

func TestExpiredCallIsDenied(t *testing.T) {
	d := newTestServer(t, Options{}, cluster, gatewayAuth)
	ctx, cancel := context.WithCancel(t.Context())
	d.opts.Guard.ReadLive = func(context.Context, api.Ref) (snapshot.Object, error) {
		cancel() // the client is gone before the paths are walked
		return d.object(t, route), nil
	}
	d.opts.Store.Apply(snapshot.Delete(d.object(t, route).Ref()))
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, PathValidate,
		strings.NewReader(string(review(t, create(t, routeAuth("rules: {authentication: {a: {}}}"))))))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	d.Handler().ServeHTTP(w, r)
	assert.Contains(t, said(t, responseOf(t, w)), "TooMuch: AuthPolicy app/toystore-auth: ")
}

func (d *testServer) object(t *testing.T, manifest string) snapshot.Object {
	t.Helper()
	data := toJSON(t, manifest)
	ref := kindOfJSON(t, data)
	v, _ := d.opts.Store.View()
	o, err := snapshot.Decode(ref, v.Kind(ref), data, 0)
	require.NoError(t, err)
	return o
}
