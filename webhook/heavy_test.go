package webhook

import (
	"context"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/inflight"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/worlds"
)

// many returns n entries of a YAML list or map, each of a form with a number.
func many(n int, form string) string {
	entries := make([]string, n)
	for i := range entries {
		entries[i] = fmt.Sprintf(form, i)
	}
	return strings.Join(entries, ", ")
}

// crowd puts routes on the gateway, each with a policy that has a login limit.
func (d *testServer) crowd(t *testing.T, routes int) {
	t.Helper()
	changes := make([]snapshot.Change, 0, 2*routes)
	for i := range routes {
		name := fmt.Sprintf("r%03d", i)
		changes = append(changes,
			snapshot.Put(d.object(t, strings.Replace(route, "name: toystore", "name: "+name, 1))),
			snapshot.Put(d.object(t, strings.NewReplacer("name: toystore}", "name: "+name+"}", "toystore-limits", name).Replace(routeLimits(20)))))
	}
	d.opts.Store.Apply(changes...)
}

func TestUnsetOfTwoThousandOverrides(t *testing.T) {
	d := newTestServer(t, Options{MaxObject: DefaultBodyLimit}, cluster, strings.Replace(gatewayAuth, "{sso: {issuer: ours}}", "{"+many(2000, "r%d: 1")+"}", 1))
	a := responseOf(t, d.post(t, PathValidate+"?timeout=100s", review(t, create(t, routeAuth("unset: ["+many(2000, "r%d")+"]")))))
	assert.Len(t, strings.Split(said(t, a), "\n"), 2000)
}

// expensive is a condition that costs as much as one may.
const expensive = `spec.limits.login.rates.all(a, spec.limits.login.rates.all(b, spec.limits.login.rates.all(c, a.limit + b.limit + c.limit >= 0)))`

// expensiveRuns counts how often the test below has run in this process.
var expensiveRuns int

func TestExpensiveConditionApplies(t *testing.T) {
	gw := strings.Replace(gatewayLimits, "when: spec.limits.login.rates.exists(r, r.limit > 50)", "when: "+expensive, 1)
	policy := strings.Replace(routeLimits(20), "{limit: 20, window: 10s}", many(100, "{limit: 2%d, window: 10s}"), 1)
	d := newTestServer(t, Options{MaxObject: DefaultBodyLimit}, cluster, gw)
	a := d.validated(t, create(t, policy))
	message := said(t, a)
	assert.True(t, strings.HasPrefix(message, "ConstraintViolated: limits.login: "), message)
	require.NotEmpty(t, a.Warnings)
	assert.Contains(t, strings.Join(a.Warnings, "\n"), "the condition of the overrides of RateLimitPolicy infra/gw-limits cannot be evaluated")

	// each evaluation at its limit, and of other values on each path and in each
	// run of the test: answers are cached by value
	expensiveRuns++
	crowded := func(o Options) *testServer {
		o.MaxObject = DefaultBodyLimit
		d := newTestServer(t, o, cluster)
		d.crowd(t, 300)
		for i := range 300 {
			name := fmt.Sprintf("r%03d", i)
			own := strings.Replace(policy, "limit: 20,", fmt.Sprintf("limit: %d%03d,", expensiveRuns, i), 1)
			d.opts.Store.Apply(snapshot.Put(d.object(t, strings.NewReplacer("name: toystore}", "name: "+name+"}", "toystore-limits", name).Replace(own))))
		}
		return d
	}
	d = crowded(Options{Guard: &guard.Guard{Budget: guard.DefaultBudget}})
	a = d.send(t, PathValidate+"?timeout=100s", create(t, gw))
	assert.True(t, strings.HasPrefix(said(t, a), "TooMuch: "), a.Result.Message)
	assert.Equal(t, &admissionv1.AdmissionResponse{UID: uid, Allowed: true}, d.mutated(t, create(t, gw)), "no annotation either")

	d = crowded(Options{})
	assert.True(t, d.send(t, PathValidate+"?timeout=100s", create(t, gw)).Allowed, "the budget grows with the paths")
}

// asConfigured is the query with which the API server calls.
var asConfigured = fmt.Sprintf("?timeout=%s", DefaultTimeout)

// Whatever is written, there is an answer within the time that the webhook
// configurations give, and the evaluation ends soon after it. That the
// answer is in time is the server's own deadline; none is measured here.
func TestHeavyWriteIsAnsweredInTime(t *testing.T) {
	for _, c := range worlds.HeavyCases() {
		if !c.Representative {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			objects, write := c.Build(t, c.Full)
			review := write.Review(t, uid)
			d := heavyServer(objects.Store, c.BlastRadius)

			a := responseOf(t, d.post(t, PathMutate+asConfigured, review))
			assert.True(t, a.Allowed, "the mutating webhook denies nothing")
			assertFree(t, d)
			a = responseOf(t, d.post(t, PathValidate+asConfigured, review))
			assertFree(t, d)
			if !isTooMuch(a) {
				assertWanted(t, c.Want(c.Full), a)
				return
			}
			assertSaysWhat(t, said(t, a))
		})
	}
}

// isTooMuch reports whether a write was denied for the cost of its evaluation.
func isTooMuch(a *admissionv1.AdmissionResponse) bool {
	return !a.Allowed && a.AuditAnnotations["denied"] == string(api.ReasonTooMuch)
}

// tooMuchSays is what a denial has to say: how far the evaluation came, or, where it
// noticed too late, that it was the time.
var tooMuchSays = regexp.MustCompile(`^TooMuch: .*it stopped (at path \d+: |before the first path)|exceeds the webhook timeout`)

func assertSaysWhat(t *testing.T, message string) {
	t.Helper()
	assert.Regexp(t, tooMuchSays, message)
}

// assertFree waits for the only slot. It is free once the evaluation has ended.
func assertFree(t *testing.T, d *testServer) {
	t.Helper()
	a := responseOf(t, d.post(t, PathValidate+"?timeout=60s", worlds.Trivial().Review(t, uid)))
	require.True(t, a.Allowed, "the evaluation does not end: %v", a.Result)
}

// noRights denies the right to remove overrides.
type noRights struct{}

func (noRights) MayOverride(context.Context, *authenticationv1.UserInfo, api.Ref) (bool, error) {
	return false, nil
}

func (noRights) Check(api.Ref) string { return "check" }

// heavyServer is a server as in production, with one evaluation slot.
func heavyServer(s *snapshot.Store, blastRadius int, e ...guard.Enforcement) *testServer {
	return &testServer{Server: New(Options{
		Enforcement: append(e, guard.EnforceDeny)[0],
		Store:       s, Guard: &guard.Guard{Engine: effective.NewEngine(), Permissions: noRights{}, BlastRadius: blastRadius, MatchLimit: guard.DefaultMatchLimit},
		InFlight: inflight.New(s, inflight.Options{}), MaxObject: DefaultBodyLimit, MaxConcurrent: 1, Log: logr.Discard(),
	})}
}

func TestHeavyWriteIsEvaluated(t *testing.T) {
	for _, c := range worlds.HeavyCases() {
		t.Run(c.Name, func(t *testing.T) {
			objects, write := c.Build(t, c.Small)
			review := write.Review(t, uid)
			d := heavyServer(objects.Store, c.BlastRadius)

			a := responseOf(t, d.post(t, PathValidate+"?timeout=100s", review))
			assertWanted(t, c.Want(c.Small), a)
			a = responseOf(t, d.post(t, PathMutate+"?timeout=100s", review))
			assert.True(t, a.Allowed)
		})
	}
}

// assertWanted checks an evaluation that was completed.
func assertWanted(t *testing.T, want worlds.Want, a *admissionv1.AdmissionResponse) {
	t.Helper()
	if want.Denied == "" {
		require.True(t, a.Allowed, "%v", a.Result)
		assert.Contains(t, strings.Join(a.Warnings, "\n"), want.Says)
		return
	}
	message := said(t, a)
	assert.True(t, strings.HasPrefix(message, string(want.Denied)+": "), message)
	assert.Contains(t, message, want.Says)
}

// Without time there is an answer, too: a denial, unless nothing is denied.
func TestHeavyWriteWithoutTimeIsDenied(t *testing.T) {
	for _, c := range worlds.HeavyCases() {
		t.Run(c.Name, func(t *testing.T) {
			objects, write := c.Build(t, c.Small)
			review := write.Review(t, uid)

			a := responseOf(t, heavyServer(objects.Store, c.BlastRadius).post(t, PathValidate+"?timeout=1ns", review))
			assert.NotEmpty(t, said(t, a))
			a = responseOf(t, heavyServer(objects.Store, c.BlastRadius, guard.EnforceWarn).post(t, PathValidate+"?timeout=1ns", review))
			assert.True(t, a.Allowed)
			assert.NotEmpty(t, a.Warnings)
			a = responseOf(t, heavyServer(objects.Store, c.BlastRadius, guard.EnforceAudit).post(t, PathValidate+"?timeout=1ns", review))
			assert.True(t, a.Allowed)
			assert.Empty(t, a.Warnings)
			assert.NotEmpty(t, a.AuditAnnotations["would-deny"])
			a = responseOf(t, heavyServer(objects.Store, c.BlastRadius).post(t, PathMutate+"?timeout=1ns", review))
			assert.True(t, a.Allowed)
			assert.Empty(t, a.Patch)
		})
	}
}

// bindings returns the heavy cases of limits that bind to rules of routes, at a size at
// which more is wrong than is reported.
func bindings(t *testing.T) map[string]func(limits int) (*testServer, []byte) {
	t.Helper()
	out := make(map[string]func(limits int) (*testServer, []byte))
	for _, c := range worlds.HeavyCases() {
		if !strings.HasPrefix(c.What, "bindings/") {
			continue
		}
		out[c.Name] = func(limits int) (*testServer, []byte) {
			size := worlds.Shape{Gateways: 1, Listeners: 1, Routes: c.Small.Routes, RouteRules: 16, Matches: 16, Rules: limits}
			objects, write := c.Build(t, size)
			review := write.Review(t, uid)
			return heavyServer(objects.Store, c.BlastRadius), review
		}
	}
	require.NotEmpty(t, out)
	return out
}

// most is how many findings of one sort are reported one by one, and mostSorts how many
// sorts a write brings at most; each has a sum.
const (
	mostTold  = 20
	mostSorts = 3
)

func TestHeavyLimitsAreTruncated(t *testing.T) {
	for name, build := range bindings(t) {
		t.Run(name, func(t *testing.T) {
			d, review := build(100)
			a := responseOf(t, d.post(t, PathValidate+"?timeout=100s", review))
			assert.LessOrEqual(t, lines(a), mostSorts*(mostTold+1))
			if !a.Allowed {
				return
			}
			assert.NotEmpty(t, a.Warnings)
		})
	}
}

// lines of a denial; one for each lost override is reported, which is how a writer knows
// whom to ask.
func lines(a *admissionv1.AdmissionResponse) int {
	if a.Result == nil {
		return 0
	}
	n := 0
	for line := range strings.Lines(a.Result.Message) {
		if !strings.HasPrefix(line, "OverrideEvaded: ") {
			n++
		}
	}
	return n
}

// Twice the limits are no more than two and a half times the work: what is allocated is
// counted, for time is another thing on each machine.
func TestHeavyLimitsAllocateLinearly(t *testing.T) {
	for name, build := range bindings(t) {
		t.Run(name, func(t *testing.T) {
			assert.LessOrEqual(t, float64(allocated(t, build, 200)), 2.5*float64(allocated(t, build, 100)))
		})
	}
}

// allocated counts what evaluating a write from cold allocates.
func allocated(t *testing.T, build func(limits int) (*testServer, []byte), limits int) uint64 {
	t.Helper()
	d, review := build(limits)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	a := responseOf(t, d.post(t, PathValidate+"?timeout=100s", review))
	runtime.ReadMemStats(&after)
	require.False(t, isTooMuch(a))
	return after.Mallocs - before.Mallocs
}
