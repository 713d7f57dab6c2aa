package webhook

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"

	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
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
