package printers

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	oldyaml "sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
)

func aGateway(name string) *api.Ref {
	return &api.Ref{Group: api.GatewayGroup, Kind: "Gateway", Namespace: "infra", Name: name}
}

func actionFor(id string) api.GatewayAction {
	return api.GatewayAction{
		Rules:          []api.GatewayRule{{Paths: []string{"/*"}}},
		Configurations: []api.DescriptorAction{{GenericKey: &api.GenericKey{DescriptorKey: "ratelimit.binding", DescriptorValue: id}}},
	}
}

func printDocuments(t *testing.T, items ...api.RenderedLimits) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, Printer{Out: &out, Format: Documents}.Rendered(items))
	return out.String()
}

// The heading of a document names the gateway, and the policy kind if there are
// several.
func TestDocumentsNameGateway(t *testing.T) {
	limits := api.PolicyKind{Group: "kuadrant.io", Kind: "RateLimitPolicy"}
	edge := api.RenderedLimits{PolicyKind: limits, Gateway: aGateway("edge"), GatewayActions: []api.GatewayAction{actionFor("a/b/c")}, Limits: []api.RenderedLimit{}}
	mesh := edge
	mesh.Gateway, mesh.Service = nil, &api.Ref{Kind: "Service", Namespace: "app", Name: "toys"}
	other := edge
	other.PolicyKind.Group = "example.com"
	for name, c := range map[string]struct {
		items []api.RenderedLimits
		want  []string
	}{
		"none":      {nil, nil},
		"one":       {[]api.RenderedLimits{edge}, []string{"# Gateway infra/edge", "# Gateway infra/edge"}},
		"a Service": {[]api.RenderedLimits{mesh}, []string{"# Service app/toys", "# Service app/toys"}},
		"of two kinds": {[]api.RenderedLimits{other, edge}, []string{
			"# Gateway infra/edge, RateLimitPolicy.example.com", "# Gateway infra/edge, RateLimitPolicy.example.com",
			"# Gateway infra/edge, RateLimitPolicy.kuadrant.io", "# Gateway infra/edge, RateLimitPolicy.kuadrant.io",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var heads []string
			for line := range strings.Lines(printDocuments(t, c.items...)) {
				if strings.HasPrefix(line, "#") {
					heads = append(heads, strings.TrimSuffix(line, "\n"))
				}
			}
			assert.Equal(t, c.want, heads)
		})
	}
	assert.Equal(t, `# Gateway infra/edge
gateway_actions:
- rules:
  - paths: ["/*"]
  configurations:
  - generic_key:
      descriptor_key: ratelimit.binding
      descriptor_value: a/b/c
---
# Gateway infra/edge
limits: []
`, printDocuments(t, edge))
}

// Fields are in the order of the RFC, whatever their names.
func TestDocumentsFieldOrder(t *testing.T) {
	text := printDocuments(t, api.RenderedLimits{
		Gateway: aGateway("edge"),
		GatewayActions: []api.GatewayAction{{
			Rules: []api.GatewayRule{{
				Paths: []string{"/a", "/b"}, Methods: []string{"GET"}, Hosts: []string{"h"},
				Headers:     []api.GatewayValue{{Name: "n", Value: "v", Type: "RegularExpression"}},
				QueryParams: []api.GatewayValue{{Name: "q", Value: "w"}},
			}},
			Configurations: []api.DescriptorAction{
				{Metadata: &api.MetadataAction{DescriptorKey: "auth.b", MetadataKey: api.MetadataKey{Key: "k", Path: []api.MetadataSegment{{Segment: api.MetadataName{Key: "b"}}}}}},
				{RequestHeaders: &api.HeaderAction{DescriptorKey: "h", HeaderName: ":path"}},
				{SourceCluster: &api.ClusterAction{DescriptorKey: "s"}},
				{DestinationCluster: &api.ClusterAction{DescriptorKey: "d"}},
			},
		}},
		Limits: []api.RenderedLimit{{Conditions: []string{`a == "b"`}, Variables: []string{"v"}, MaxValue: 1, Seconds: 2, Namespace: "n"}},
	})
	assert.Equal(t, `# Gateway infra/edge
gateway_actions:
- rules:
  - paths: ["/a", "/b"]
    methods: ["GET"]
    hosts: ["h"]
    headers:
    - name: "n"
      value: v
      type: RegularExpression
    query_params:
    - name: q
      value: w
  configurations:
  - metadata:
      descriptor_key: auth.b
      metadata_key:
        key: k
        path:
        - segment:
            key: b
  - request_headers:
      descriptor_key: h
      header_name: :path
  - source_cluster:
      descriptor_key: s
  - destination_cluster:
      descriptor_key: d
---
# Gateway infra/edge
limits:
- conditions:
  - a == "b"
  variables:
  - v
  max_value: 1
  seconds: 2
  namespace: "n"
`, text)
}

// Strings that YAML would read as another type are quoted.
func TestDocumentsQuoteStrings(t *testing.T) {
	texts := []string{"true", "null", "12", "1e3", "", "a: b", "- a", "#", "*a", "a\nb", "a\tb", "\u007f", "\x01", "ü", "\u2028", `"`, "'", "~", "2026-11-21", "on", "No", "y", "1:30", "0o7", "0x1F", ".5", "\ufeff", strings.Repeat("long ", 100) + "end"}
	text := printDocuments(t, api.RenderedLimits{Gateway: aGateway("edge"), Limits: []api.RenderedLimit{{
		Conditions: texts, Variables: texts, MaxValue: 9223372036854775807, Seconds: 1, Namespace: "yes",
	}}, GatewayActions: []api.GatewayAction{{Rules: []api.GatewayRule{{Paths: texts, Hosts: texts}}}}})
	_, second, found := strings.Cut(text, "\n---\n")
	require.True(t, found)
	var got struct {
		Limits []struct {
			Conditions, Variables []any
			MaxValue              int64 `yaml:"max_value"`
			Namespace             any
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(second), &got), second)
	var want []any
	for _, t := range texts {
		want = append(want, t)
	}
	assert.Equal(t, want, got.Limits[0].Conditions)
	assert.Equal(t, want, got.Limits[0].Variables)
	assert.Equal(t, int64(9223372036854775807), got.Limits[0].MaxValue)
	assert.Equal(t, "yes", got.Limits[0].Namespace)
	other, err := oldyaml.YAMLToJSONStrict([]byte(second))
	require.NoError(t, err)
	var older struct{ Limits []struct{ Conditions []any } }
	require.NoError(t, json.Unmarshal(other, &older))
	assert.Equal(t, want, older.Limits[0].Conditions, "as older readers have it")
	var first map[string][]struct {
		Rules []struct{ Paths, Hosts []any }
	}
	require.NoError(t, yaml.Unmarshal([]byte(text), &first))
	assert.Equal(t, want, first["gateway_actions"][0].Rules[0].Paths)
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errBroken }

var errBroken = errors.New("broken pipe")

func TestDocumentsWriteErrors(t *testing.T) {
	items := []api.RenderedLimits{{Gateway: aGateway("edge")}}
	for _, format := range []Format{Documents, JSON, YAML} {
		err := Printer{Out: brokenPipe{}, Format: format}.Rendered(items)
		require.ErrorIs(t, err, errBroken)
		require.ErrorContains(t, err, "write the result: ")
	}
	require.ErrorContains(t, writeOrdered(io.Discard, func() {}), "unsupported type")
}
