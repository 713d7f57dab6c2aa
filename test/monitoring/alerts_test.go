package monitoring

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
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
	groups, errs := manager.LoadGroups(time.Minute, labels.EmptyLabels(), "", nil, false, ruleFiles...)
	require.Empty(t, errs)
	start := time.Unix(0, 0).UTC()
	var out []labels.Labels
	for at := start; !at.After(start.Add(after)); at = at.Add(time.Minute) {
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

func TestEachAlertFiresAndIsSilent(t *testing.T) {
	var cases map[string]struct {
		After     model.Duration
		Bad, Good string
	}
	require.NoError(t, yaml.UnmarshalStrict([]byte(content(t, "testdata/alerts.yaml")), &cases))
	for name := range alerts(t) {
		t.Run(name, func(t *testing.T) {
			world, ok := cases[name]
			require.True(t, ok, "an alert without a test")
			fired := firing(t, world.Bad, name, time.Duration(world.After))
			assert.Len(t, fired, 1)
			if name != "OverruleAbsent" && len(fired) == 1 {
				assert.Equal(t, "o", fired[0].Get("namespace"), "it has the labels of the installation")
			}
			assert.Empty(t, firing(t, world.Good, name, time.Duration(world.After)))
		})
	}
}
