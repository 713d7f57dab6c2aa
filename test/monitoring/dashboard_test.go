package monitoring

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// dashboard has the fields of Grafana's schema that the dashboard uses.
type dashboard struct {
	UID, Title, Description, Refresh, Timezone string
	Tags                                       []string
	SchemaVersion, Version, GraphTooltip       int
	Editable                                   bool
	Time                                       struct{ From, To string }
	Annotations                                struct{ List []any }
	Links                                      []any
	Templating                                 struct{ List []variable }
	Panels                                     []panel
}

type source struct{ Type, UID string }

type variable struct {
	Name, Label, Type, Definition, Regex, AllValue string
	Query                                          any
	Datasource                                     *source
	Hide, Refresh, Sort                            int
	Multi, IncludeAll                              bool
	Current                                        map[string]any
	Options                                        []any
}

type panel struct {
	ID                       int
	Type, Title, Description string
	Collapsed                bool
	Panels                   []panel
	Datasource               *source
	GridPos                  struct{ H, W, X, Y int }
	Targets                  []struct {
		RefID, Expr, LegendFormat string
		Datasource                *source
	}
	FieldConfig struct {
		Defaults  map[string]any
		Overrides []any
	}
	Options map[string]any
}

func loadDashboard(t *testing.T) dashboard {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader([]byte(content(t, deploy+"/monitoring/dashboard.json"))))
	d.DisallowUnknownFields()
	var out dashboard
	require.NoError(t, d.Decode(&out))
	return out
}

// dashboardVariables replaces the variables of a query, as Grafana does.
var dashboardVariables = strings.NewReplacer("$namespace", ".*", "$__rate_interval", "2m")

// panelQueries returns the queries of all panels, by panel and letter.
func panelQueries(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, p := range loadDashboard(t).Panels {
		for _, q := range p.Targets {
			out[p.Title+" "+q.RefID] = dashboardVariables.Replace(q.Expr)
		}
	}
	return out
}

func TestDashboardVariables(t *testing.T) {
	d := loadDashboard(t)
	assert.Equal(t, "overrule", d.UID)
	assert.Positive(t, d.SchemaVersion)
	require.Len(t, d.Templating.List, 2)
	assert.Equal(t, "datasource prometheus", d.Templating.List[0].Type+" "+d.Templating.List[0].Query.(string))
	assert.Equal(t, "namespace", d.Templating.List[1].Name)
	for _, p := range d.Panels {
		if p.Type == "row" {
			continue
		}
		assert.Equal(t, &source{"prometheus", "${datasource}"}, p.Datasource, p.Title)
		require.NotEmpty(t, p.Targets, p.Title)
		for _, q := range p.Targets {
			assert.Equal(t, p.Datasource, q.Datasource, p.Title)
			assert.Contains(t, q.Expr, `namespace=~"$namespace"`, p.Title)
			assert.NotEmpty(t, q.LegendFormat, p.Title)
		}
	}
}

func TestPanelLayout(t *testing.T) {
	ids, cells := map[int]string{}, map[[2]int]string{}
	for _, p := range loadDashboard(t).Panels {
		assert.NotContains(t, ids, p.ID, p.Title)
		ids[p.ID] = p.Title
		assert.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				assert.NotContains(t, cells, at, "%s is over %s", p.Title, cells[at])
				cells[at] = p.Title
			}
		}
	}
}

func TestDashboardQueriesParse(t *testing.T) {
	queries := panelQueries(t)
	require.NotEmpty(t, queries)
	for name, q := range queries {
		assert.NotEmpty(t, metricsIn(t, q), name)
	}
}

// Metrics of the leader, which no other replica has.
func TestLeaderMetricsAreOnDashboard(t *testing.T) {
	var shown []string
	for _, q := range panelQueries(t) {
		for _, name := range metricsIn(t, q) {
			shown = append(shown, strings.TrimSuffix(name, "_bucket"))
		}
	}
	rows := regexp.MustCompile("(?m)^\\| `(overrule_(?:last_review|audit_runs)[a-z_]*)` \\| ").FindAllStringSubmatch(content(t, metricsPage), -1)
	require.Greater(t, len(rows), 1, "the table of metrics has them")
	for _, row := range rows {
		assert.Contains(t, shown, row[1])
	}
}
