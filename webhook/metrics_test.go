package webhook

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/internal/webhookconfig"
)

// counted compares what was counted; what is still at 0 is left out.
func (d *testServer) counted(t *testing.T, name, want string) {
	t.Helper()
	some := prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, err := d.registry.Gather()
		for _, f := range families {
			f.Help = new("")
			f.Metric = slices.DeleteFunc(f.GetMetric(), func(m *dto.Metric) bool { return m.Counter != nil && m.GetCounter().GetValue() == 0 })
		}
		return families, err
	})
	assert.NoError(t, testutil.GatherAndCompare(some, strings.NewReader(strings.TrimSpace(want)+"\n"), name))
}

func TestDecisionMetrics(t *testing.T) {
	d := newTestServer(t, Options{Guard: &guard.Guard{ReadLive: panicking}}, cluster, gatewayAuth, gatewayLimits)
	for range 2 {
		d.validated(t, create(t, routeLimits(100)))
	}
	d.mutated(t, update(t, routeLimits(20), routeLimits(30)))
	d.validated(t, remove(t, route))
	d.validated(t, create(t, homeless()))
	d.post(t, PathMutate, []byte("x"))

	d.counted(t, "overrule_decisions_total", `
# TYPE overrule_decisions_total counter
overrule_decisions_total{allowed="false",kind="RateLimitPolicy.kuadrant.io",operation="CREATE",reason="ConstraintViolated",webhook="validate"} 2
overrule_decisions_total{allowed="false",kind="RateLimitPolicy.kuadrant.io",operation="CREATE",reason="Panic",webhook="validate"} 1
overrule_decisions_total{allowed="true",kind="RateLimitPolicy.kuadrant.io",operation="UPDATE",reason="",webhook="mutate"} 1
overrule_decisions_total{allowed="true",kind="HTTPRoute.gateway.networking.k8s.io",operation="DELETE",reason="",webhook="validate"} 1
`)
	d.counted(t, "overrule_panics_total", `
# TYPE overrule_panics_total counter
overrule_panics_total 1
`)
	d.counted(t, "overrule_requests_rejected_total", `
# TYPE overrule_requests_rejected_total counter
overrule_requests_rejected_total{reason="invalid_review",webhook="mutate"} 1
`)
	n, err := testutil.GatherAndCount(d.registry, "overrule_decision_duration_seconds")
	require.NoError(t, err)
	assert.Equal(t, 2, n, "one histogram a webhook")
}

// The review of the probe shows that the API server reaches this replica, and is no
// decision. A forwarded one reached another replica.
func TestLastReviewMetric(t *testing.T) {
	now := time.UnixMilli(1000_500)
	d := newTestServer(t, Options{Readers: &readers{}}, cluster, gatewayLimits)
	d.opts.Now = func() time.Time { return now }
	last := func() float64 { return testutil.ToFloat64(d.opts.Metrics.lastReview) }
	assert.Zero(t, last())
	probe := policyReview(t, "spec: {object: {}}\n")
	probe.Name = webhookconfig.ProbeName
	denied := d.asked(t, probe)
	assert.False(t, denied.Allowed, "the probe looks for the denial")
	assert.InDelta(t, 1000.5, last(), 0)
	d.counted(t, "overrule_decisions_total", "")

	now = now.Add(time.Minute)
	d.post(t, PathMutate, []byte("x"))
	assert.InDelta(t, 1000.5, last(), 0, "not a review")
	d.validated(t, create(t, routeLimits(20)))
	assert.InDelta(t, 1060.5, last(), 0)
}

func TestWarnedDenialMetric(t *testing.T) {
	d := newTestServer(t, Options{Enforcement: guard.EnforceWarn}, cluster, gatewayLimits)
	d.validated(t, create(t, routeLimits(100)))
	d.counted(t, "overrule_decisions_total", `
# TYPE overrule_decisions_total counter
overrule_decisions_total{allowed="true",kind="RateLimitPolicy.kuadrant.io",operation="CREATE",reason="ConstraintViolated",webhook="validate"} 1
`)
}

func TestUnavailableMetric(t *testing.T) {
	d := newTestServer(t, Options{Store: snapshot.New("gateways")})
	d.post(t, PathValidate, review(t, create(t, route)))
	d.counted(t, "overrule_requests_rejected_total", `
# TYPE overrule_requests_rejected_total counter
overrule_requests_rejected_total{reason="unavailable",webhook="validate"} 1
`)
}

func TestMetricCardinalityIsBounded(t *testing.T) {
	d := newTestServer(t, Options{}, cluster)
	for i := range 100 {
		d.validated(t, &admissionv1.AdmissionRequest{
			UID: uid, Operation: admissionv1.Operation(fmt.Sprintf("OP%d", i)),
			Kind: metav1.GroupVersionKind{Group: fmt.Sprintf("g%d", i), Kind: "K"}, Object: raw("{}"),
		})
	}
	n, err := testutil.GatherAndCount(d.registry, "overrule_decisions_total")
	require.NoError(t, err)
	assert.LessOrEqual(t, n, 2)
}

func TestDecisionLogHasNoObjectContent(t *testing.T) {
	const secret = "hunter2"
	d := newTestServer(t, Options{}, cluster, gatewayAuth, gatewayLimits)
	policy := strings.Replace(annotated(routeLimits(100), "password", secret), "login: {", "login: {"+secret+": 1, ", 1)
	dry := create(t, policy)
	dry.DryRun = new(true)
	said(t, d.validated(t, dry))
	d.mutated(t, update(t, routeLimits(20), policy))
	d.validated(t, create(t, routeAuth("rules: "+secret)))
	d.post(t, PathValidate, []byte(`{"request": {"object": "`+secret))
	d.post(t, PathValidate, []byte(`{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": "`+secret+`"}`))
	lines := strings.Split(d.log.String(), "\n")
	require.Len(t, lines, 5, "one line a decision")
	assert.Contains(t, lines[0], `"msg"="decision" "webhook"="validate" "uid"="`+string(uid)+`" "operation"="CREATE" `+
		`"kind"="RateLimitPolicy.kuadrant.io" "namespace"="app" "name"="toystore-limits" "allowed"=false "reason"="ConstraintViolated" `+
		`"warnings"=0 "patched"=false "dryRun"=true`)
	assert.Contains(t, lines[1], `"webhook"="mutate"`)
	assert.Contains(t, lines[1], `"patched"=true`)
	assert.NotContains(t, d.log.String(), secret)
}

// A counter that appears at 1 has no increase that an alert could see.
func TestCountersStartAtZero(t *testing.T) {
	registry := prometheus.NewRegistry()
	NewMetrics(registry)
	for name, want := range map[string]int{"overrule_requests_rejected_total": 11, "overrule_panics_total": 1} {
		n, err := testutil.GatherAndCount(registry, name)
		require.NoError(t, err)
		assert.Equal(t, want, n, name)
	}
}
