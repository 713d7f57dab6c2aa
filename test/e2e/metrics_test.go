//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
)

func TestMetricsAreValidAndDocumented(t *testing.T) {
	c := shared(t)
	g := c.prepare(t, "metrics")
	s := c.start(t)
	succeed(t, g.apply(gatewayLimits))
	denied(t, g.apply(limits("name: p", 100)), "ConstraintViolated: ")

	text := metricsPage(t, s)
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	require.NoError(t, err)
	for _, p := range problems {
		assert.False(t, strings.HasPrefix(p.Metric, "overrule_"), "%s: %s", p.Metric, p.Text)
	}

	root, err := env.Repository(t.Context())
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(root, "docs", "reference.md"))
	require.NoError(t, err)
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	require.NoError(t, err)
	for name, f := range families {
		if strings.HasPrefix(name, "overrule_") {
			assert.Contains(t, string(page), "\n| `"+name+"` | "+strings.ToLower(f.GetType().String())+" | ")
			labelsAreDocumented(t, string(page), f)
		}
	}
	for row := range strings.Lines(string(page)) {
		if name, ok := strings.CutPrefix(row, "| `overrule_"); ok {
			name, _, _ = strings.Cut("overrule_"+name, "`")
			assert.True(t, families[name] != nil || slices.Contains(occasional, name), "%s is documented, and not exported", name)
		}
	}
}

// occasional are the metrics that a server has only with some flag, or after something
// that did not happen here.
var occasional = []string{
	"overrule_audit_runs_total",
	"overrule_forwarded_total", "overrule_violations",
	"overrule_watch_failures_total", "overrule_webhook_repairs_total",
}

// labelsAreDocumented looks for the labels of a metric in its row.
func labelsAreDocumented(t *testing.T, page string, f *dto.MetricFamily) {
	t.Helper()
	_, row, _ := strings.Cut(page, "\n| `"+f.GetName()+"` | ")
	row, _, _ = strings.Cut(row, "\n")
	for _, l := range f.GetMetric()[0].GetLabel() {
		assert.Contains(t, row, "`"+l.GetName()+"`", f.GetName())
	}
}
