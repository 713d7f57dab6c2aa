package monitoring

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	minute = time.Minute
	hour   = time.Hour
)

// firing returns the labels of the alerts with that name that fire after a time,
// by the engine of Prometheus.
func firing(t *testing.T, series, name string, after time.Duration) []labels.Labels {
	t.Helper()
	suite, err := promqltest.NewLazyLoader("load 1m\n"+series, promqltest.LazyLoaderOpts{EnableAtModifier: true, EnableNegativeOffset: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, suite.Close()) }()
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc:  rules.EngineQueryFunc(suite.QueryEngine(), suite.Storage()),
		Appendable: suite.Storage(), Queryable: suite.Storage(), Context: t.Context(),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {},
		Logger:     promslog.NewNopLogger(), Parser: expressions,
	})
	groups, errs := manager.LoadGroups(minute, labels.EmptyLabels(), "", nil, false, ruleFiles...)
	require.Empty(t, errs)
	start := time.Unix(0, 0).UTC()
	var out []labels.Labels
	for at := start; !at.After(start.Add(after)); at = at.Add(minute) {
		var failed error
		suite.WithSamplesTill(at, func(err error) {
			failed = err
			for _, g := range groups {
				g.Eval(suite.Context(), at)
			}
		})
		require.NoError(t, failed)
	}
	for _, g := range groups {
		for _, r := range g.AlertingRules() {
			require.NoError(t, r.LastError(), r.Name())
			if r.Name() != name {
				continue
			}
			for _, a := range r.ActiveAlerts() {
				if a.State == rules.StateFiring {
					out = append(out, a.Labels)
					assert.NotContains(t, a.Annotations.String(), "<no value>")
					assert.NotContains(t, a.Annotations.String(), "error expanding")
				}
			}
		}
	}
	return out
}

// Each alert fires for one set of series and is silent for another that is as
// close as possible.
var alertCases = map[string]struct {
	bad, good string
	after     time.Duration
}{
	"OverruleAbsent": {
		bad:   `up{job="other"} 1x60`,
		good:  `overrule_build_info{namespace="o", pod="a"} 1x60`,
		after: 10 * minute,
	},
	"OverruleNotReady": {
		bad: `overrule_ready{namespace="o", pod="a"} 0x60
		      overrule_ready{namespace="other", pod="a"} 1x60`,
		good: `overrule_ready{namespace="o", pod="a"} 0x60
		       overrule_ready{namespace="o", pod="b"} 1x60`,
		after: 10 * minute,
	},
	"OverruleReplicaNotReady": {
		bad:   `overrule_ready{namespace="o", pod="a"} 0x60`,
		good:  `overrule_ready{namespace="o", pod="a"} 0x10 1x50`,
		after: 30 * minute,
	},
	"OverruleNoLeader": {
		bad: `overrule_leader{namespace="o", pod="a"} 0x60
		      overrule_leader{namespace="other", pod="a"} 1x60`,
		good: `overrule_leader{namespace="o", pod="a"} 0x60
		       overrule_leader{namespace="o", pod="b"} 1x60`,
		after: 10 * minute,
	},
	"OverruleNotCalled": {
		bad: `overrule_last_review_timestamp_seconds{namespace="o", pod="a"} 0+60x5 300x60
		      overrule_last_review_timestamp_seconds{namespace="o", pod="b"} 0x60`,
		good: `overrule_last_review_timestamp_seconds{namespace="o", pod="a"} 0+60x60
		       overrule_last_review_timestamp_seconds{namespace="o", pod="b"} 0x60`,
		after: 20 * minute,
	},
	"OverruleUnavailable": {
		bad:   `overrule_requests_rejected_total{namespace="o", pod="a", webhook="mutate", reason="unavailable"} 0+1x60`,
		good:  `overrule_requests_rejected_total{namespace="o", pod="a", webhook="mutate", reason="invalid_review"} 0+1x60`,
		after: 20 * minute,
	},
	"OverruleOverloaded": {
		bad: `overrule_requests_rejected_total{namespace="o", pod="a", webhook="mutate", reason="overloaded"} 0x60
		      overrule_decisions_total{namespace="o", pod="a", webhook="validate", reason="Overloaded"} 0+1x60`,
		good: `overrule_requests_rejected_total{namespace="o", pod="a", webhook="mutate", reason="overloaded"} 7x60
		       overrule_decisions_total{namespace="o", pod="a", webhook="validate", reason="ConstraintViolated"} 0+1x60`,
		after: 20 * minute,
	},
	"OverruleFailing": {
		bad:   `overrule_decisions_total{namespace="o", pod="a", reason="TooMuch"} 0+1x60`,
		good:  `overrule_decisions_total{namespace="o", pod="a", reason="ConstraintViolated"} 0+1x60`,
		after: 20 * minute,
	},
	"OverrulePanics": {
		bad:   `overrule_panics_total{namespace="o", pod="a"} 0x10 1x50`,
		good:  `overrule_panics_total{namespace="o", pod="a"} 3x60`,
		after: 15 * minute,
	},
	"OverruleCacheStale": {
		bad:   `overrule_cache_age_seconds{namespace="o", pod="a", resource="gateways"} 0+60x60`,
		good:  `overrule_cache_age_seconds{namespace="o", pod="a", resource="gateways"} 100x60`,
		after: 30 * minute,
	},
	"OverruleWatchFailing": {
		bad:   `overrule_watch_failures_total{namespace="o", pod="a", resource="gateways"} 0+1x120`,
		good:  `overrule_watch_failures_total{namespace="o", pod="a", resource="gateways"} 0x10 2x110`,
		after: hour,
	},
	"OverruleCertificateExpiresSoon": {
		bad:   `overrule_certificate_expiry_timestamp_seconds{namespace="o", pod="a", certificate="serving"} 200000x180`,
		good:  `overrule_certificate_expiry_timestamp_seconds{namespace="o", pod="a", certificate="serving"} 864000x180`,
		after: 2 * hour,
	},
	"OverruleViolations": {
		bad:   `overrule_violations{namespace="o", pod="a", reason="ConstraintViolated", policy_kind="P", action="Deny"} 2x60`,
		good:  `overrule_violations{namespace="o", pod="a", reason="ConstraintViolated", policy_kind="P", action="Warn"} 2x60`,
		after: 45 * minute,
	},
	"OverruleAuditFailing": {
		bad:   `overrule_audit_runs_total{namespace="o", pod="a", scope="all", result="failed"} 0+1x120`,
		good:  `overrule_audit_runs_total{namespace="o", pod="a", scope="all", result="done"} 0+1x120`,
		after: 90 * minute,
	},
	"OverruleWebhooksEdited": {
		bad:   `overrule_webhook_repairs_total{namespace="o", pod="a", configuration="validating"} 0+1x60`,
		good:  `overrule_webhook_repairs_total{namespace="o", pod="a", configuration="validating"} 0x10 1x50`,
		after: 30 * minute,
	},
	"OverruleRefreshStuck": {
		bad:   `workqueue_depth{namespace="o", pod="a", name="overrule-annotations"} 1+1x180`,
		good:  `workqueue_depth{namespace="o", pod="a", name="overrule-annotations"} 0+1x50 0+1x50 0+1x50`,
		after: 2 * hour,
	},
	"OverruleRefreshFailing": {
		bad:   `controller_runtime_reconcile_errors_total{namespace="o", pod="a", controller="overrule-annotations"} 0+1x60`,
		good:  `controller_runtime_reconcile_errors_total{namespace="o", pod="a", controller="another"} 0+1x60`,
		after: 30 * minute,
	},
	"OverruleSlow": {
		bad: `overrule_decision_duration_seconds_bucket{namespace="o", pod="a", webhook="validate", le="0.5"} 0+1x60
		      overrule_decision_duration_seconds_bucket{namespace="o", pod="a", webhook="validate", le="1"} 0+10x60
		      overrule_decision_duration_seconds_bucket{namespace="o", pod="a", webhook="validate", le="+Inf"} 0+10x60`,
		good: `overrule_decision_duration_seconds_bucket{namespace="o", pod="a", webhook="validate", le="0.1"} 0+1000x60
		       overrule_decision_duration_seconds_bucket{namespace="o", pod="a", webhook="validate", le="1"} 0+1001x60
		       overrule_decision_duration_seconds_bucket{namespace="o", pod="a", webhook="validate", le="+Inf"} 0+1001x60`,
		after: 30 * minute,
	},
	"OverrulePathsUnprotected": {
		bad: `overrule_paths{namespace="o", pod="a", policy_kind="AuthPolicy.kuadrant.io", state="none"} 2x60`,
		good: `overrule_paths{namespace="o", pod="a", policy_kind="AuthPolicy.kuadrant.io", state="none"} 0x60
		       overrule_paths{namespace="o", pod="a", policy_kind="DNSPolicy.kuadrant.io", state="none"} 2x60`,
		after: 20 * minute,
	},
}

func TestEachAlertFiresAndIsSilent(t *testing.T) {
	for name := range alerts(t) {
		t.Run(name, func(t *testing.T) {
			world, ok := alertCases[name]
			require.True(t, ok, "an alert without a test")
			fired := firing(t, world.bad, name, world.after)
			assert.Len(t, fired, 1)
			if name != "OverruleAbsent" && len(fired) == 1 {
				assert.Equal(t, "o", fired[0].Get("namespace"), "it has the labels of the installation")
			}
			assert.Empty(t, firing(t, world.good, name, world.after))
		})
	}
}
