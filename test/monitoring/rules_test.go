package monitoring

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

const (
	deploy = "../../deploy"
	// alertsPage has a section for each alert, metricsPage a row for each metric.
	alertsPage  = "../../docs/troubleshooting.md"
	metricsPage = "../../docs/reference.md"
)

// ruleFiles are the files that users load.
var ruleFiles = []string{deploy + "/monitoring/rules.yaml", deploy + "/monitoring/unprotected.yaml"}

// expressions reads PromQL as Prometheus does.
var expressions = parser.NewParser(parser.Options{})

func content(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.FromSlash(file))
	require.NoError(t, err)
	return string(data)
}

// alerts returns all rules by their names.
func alerts(t *testing.T) map[string]rulefmt.Rule {
	t.Helper()
	out := map[string]rulefmt.Rule{}
	for _, file := range ruleFiles {
		groups, errs := rulefmt.Parse([]byte(content(t, file)), false, model.LegacyValidation, expressions, promslog.NewNopLogger())
		require.Empty(t, errs, file)
		for _, g := range groups.Groups {
			for _, r := range g.Rules {
				require.NotContains(t, out, r.Alert)
				out[r.Alert] = r
			}
		}
	}
	return out
}

func TestAlertsHaveSeverityAndRunbook(t *testing.T) {
	lines := strings.Split(content(t, alertsPage), "\n")
	raw := content(t, ruleFiles[0]) + content(t, ruleFiles[1])
	for name, r := range alerts(t) {
		assert.Contains(t, []string{"critical", "warning"}, r.Labels["severity"], name)
		assert.NotEmpty(t, r.Annotations["summary"], name)
		assert.NotEmpty(t, r.Annotations["description"], name)
		assert.Equal(t, "docs/troubleshooting.md#"+strings.ToLower(name), r.Annotations["runbook_url"], name)
		_, rule, _ := strings.Cut(raw, "- alert: "+name+"\n")
		assert.Contains(t, strings.SplitN(rule, "- alert: ", 2)[0], "\n    for: ", name)

		at := slices.Index(lines, "### "+name)
		require.Positive(t, at, "%s has a section", name)
		section := strings.Join(lines[at:min(at+12, len(lines))], "\n")
		for _, part := range []string{"- **Look at**: ", "- **Do**: "} {
			assert.Contains(t, section, part, name)
		}
	}
}

// metricsIn returns the names of the metrics in an expression.
func metricsIn(t *testing.T, expression string) []string {
	t.Helper()
	e, err := expressions.ParseExpr(expression)
	require.NoError(t, err, expression)
	var out []string
	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		if s, ok := n.(*parser.VectorSelector); ok {
			out = append(out, s.Name)
		}
		return nil
	})
	return out
}

// thirdPartyMetrics are metrics of client-go, controller-runtime and Go.
var thirdPartyMetrics = []string{
	"process_resident_memory_bytes", "process_cpu_seconds_total", "go_goroutines",
	"controller_runtime_reconcile_total", "controller_runtime_reconcile_errors_total", "workqueue_depth", "workqueue_queue_duration_seconds_bucket",
}

func TestMetricsInRulesExist(t *testing.T) {
	table := content(t, metricsPage)
	queries := slices.Collect(maps.Values(panelQueries(t)))
	for _, r := range alerts(t) {
		queries = append(queries, r.Expr)
	}
	for _, q := range queries {
		for _, name := range metricsIn(t, q) {
			if slices.Contains(thirdPartyMetrics, name) {
				continue
			}
			assert.Contains(t, table, "\n| `"+strings.TrimSuffix(name, "_bucket")+"` | ", "the table of metrics has what %s needs", q)
		}
	}
}

// The objects of the Prometheus Operator are decoded strictly into its types.
func TestPrometheusRuleMatchesRules(t *testing.T) {
	var rule monitoringv1.PrometheusRule
	require.NoError(t, yaml.UnmarshalStrict([]byte(content(t, deploy+"/components/monitoring/prometheusrule.yaml")), &rule))
	assert.Equal(t, "monitoring.coreos.com/v1 PrometheusRule", rule.APIVersion+" "+rule.Kind)
	var plain, wrapped any
	require.NoError(t, yaml.Unmarshal([]byte(content(t, ruleFiles[0])), &plain))
	var object map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(content(t, deploy+"/components/monitoring/prometheusrule.yaml")), &object))
	wrapped = object["spec"]
	assert.Equal(t, plain, wrapped, `run "make generate"`)
}

func TestEveryReplicaIsScraped(t *testing.T) {
	var monitor monitoringv1.PodMonitor
	require.NoError(t, yaml.UnmarshalStrict([]byte(content(t, deploy+"/components/monitoring/podmonitor.yaml")), &monitor))
	var deployment struct {
		Metadata struct{ Namespace string }
		Spec     struct {
			Template struct {
				Metadata struct{ Labels map[string]string }
				Spec     struct {
					Containers []struct {
						Name  string
						Ports []struct{ Name string }
					}
				}
			}
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(content(t, deploy+"/base/deployment.yaml")), &deployment))
	assert.Equal(t, deployment.Metadata.Namespace, monitor.Namespace)
	for k, v := range monitor.Spec.Selector.MatchLabels {
		assert.Equal(t, v, deployment.Spec.Template.Metadata.Labels[k])
	}
	require.Len(t, monitor.Spec.PodMetricsEndpoints, 1)
	assert.Contains(t, fmt.Sprint(deployment.Spec.Template.Spec.Containers[0].Ports), "{"+*monitor.Spec.PodMetricsEndpoints[0].Port+"}")
	interval, err := time.ParseDuration(string(monitor.Spec.PodMetricsEndpoints[0].Interval))
	require.NoError(t, err)
	assert.LessOrEqual(t, interval, time.Minute, "rates over five minutes need several samples")
}
