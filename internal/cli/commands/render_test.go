package commands

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/test/outputschema"
	"overrule.dev/overrule/test/tables"
)

// limitsAt writes a RateLimitPolicy of app on an object: spec is the rest of its
// spec.
func limitsAt(version, namespace, name, target, spec string) string {
	return "\n---\napiVersion: kuadrant.io/" + version + "\nkind: RateLimitPolicy\nmetadata: {namespace: " + namespace + ", name: " + name + "}\n" +
		"spec:\n  targetRef: {group: gateway.networking.k8s.io, " + target + "}\n  " + spec + "\n"
}

const (
	fivePerSecond = "{rates: [{limit: 5, unit: second}]}"
	onToys        = "kind: HTTPRoute, name: toys"
	onEdge        = "kind: Gateway, name: edge"
)

// assertLines checks that each line of the standard error contains the parts of a line,
// which "…" separates.
func assertLines(t *testing.T, want string, got result) {
	t.Helper()
	goldenStderr(t, got)
	lines := slices.Collect(strings.Lines(got.stderr))
	wanted := slices.Collect(strings.Lines(want))
	require.Len(t, lines, len(wanted), got.stderr)
	for i, line := range wanted {
		for part := range strings.SplitSeq(strings.TrimSuffix(line, "\n"), " … ") {
			assert.Contains(t, lines[i], part)
		}
	}
}

func runRender(t *testing.T, policies string, args ...string) result {
	t.Helper()
	if policies == "" {
		policies = "\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: app}\n"
	}
	return run(t, policies, append([]string{"render", "-f", "testdata/render/world.yaml", "-f", "-"}, args...)...)
}

// renderedIDs returns for each gateway the limits of its actions and their rules. It
// requires that the two documents agree.
func renderedIDs(t *testing.T, got result) map[string][]string {
	t.Helper()
	require.Equal(t, exitOK, got.code, got.stderr)
	out := make(map[string][]string)
	for _, item := range decode[api.RenderedLimitsList](t, got.stdout).Items {
		at := item.Gateway
		if at == nil {
			at = item.Service
		}
		require.Len(t, item.Limits, len(item.GatewayActions), "each limit here has one rate")
		for i, action := range item.GatewayActions {
			id := action.Configurations[0].GenericKey.DescriptorValue
			assert.Equal(t, `ratelimit.binding == "`+id+`"`, item.Limits[i].Conditions[0])
			assert.Equal(t, at.Key(), item.Limits[i].Namespace)
			for _, rule := range action.Rules {
				id += " " + strings.Join(append(append(rule.Methods, rule.Paths...), rule.Hosts...), " ")
			}
			out[at.String()] = append(out[at.String()], id)
		}
	}
	return out
}

func TestRenderPerGateway(t *testing.T) {
	for name, c := range tables.Read[map[string]struct {
		Policies string
		Args     []string
		Want     map[string][]string
		Stderr   string
	}](t, "testdata/tables/render.yaml") {
		t.Run(name, func(t *testing.T) {
			got := runRender(t, c.Policies, append(c.Args, "-o", "json")...)
			assert.Equal(t, c.Want, renderedIDs(t, got))
			assertLines(t, c.Stderr, got)
			requireSchema(t, api.KindRenderedLimitsList, got)
		})
	}
}

// Two limits on a rule conflict only if they apply to the same hosts.
func TestBoundLimitsConflictByHost(t *testing.T) {
	at := boundRule{entryPoint{object: api.Ref{Kind: "Gateway", Namespace: "infra", Name: "edge"}}, "HTTPRouteRule app/toys#rule-1", api.Ref{}, 0}
	limit := func(name string) limitRef {
		return limitRef{api.Ref{Kind: "RateLimitPolicy", Namespace: "app", Name: "p"}, "limits." + name}
	}
	for name, c := range map[string]struct {
		a, b []string
		want []string
	}{
		"of other hosts":        {[]string{"a.acme.com", "*.eu.acme.com"}, []string{"b.acme.com", "*.us.acme.com"}, nil},
		"of one that is same":   {[]string{"a.acme.com", "b.acme.com"}, []string{"b.acme.com"}, []string{"limits.a of RateLimitPolicy app/p and limits.b of RateLimitPolicy app/p on HTTPRouteRule app/toys#rule-1 at Gateway infra/edge"}},
		"of one within another": {[]string{"*.acme.com"}, []string{"b.acme.com"}, []string{"limits.a of RateLimitPolicy app/p and limits.b of RateLimitPolicy app/p on HTTPRouteRule app/toys#rule-1 at Gateway infra/edge"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := boundLimits{at: {{limit("b"), c.b}}}
			for _, h := range c.a {
				d[at] = append(d[at], boundLimit{limit("a"), []string{h}})
			}
			assert.Equal(t, c.want, d.conflicts())
		})
	}
}

// A policy whose override has a condition may have different limits of one name on
// different paths. Their identifiers differ.
func TestRenderLimitOfTwoBlocks(t *testing.T) {
	got := runRender(t, limitsAt("v2beta1", "infra", "gw", "kind: Gateway, name: back", `
  defaults: {strategy: merge, limits: {a: {rates: [{limit: 5, unit: second}]}}}
  overrides: {strategy: merge, when: 'has(spec.limits.own)', limits: {a: {rates: [{limit: 1, unit: second}]}}}
`)+limitsAt("v2beta1", "calls", "own", "kind: GRPCRoute, name: calls", "limits: {own: "+fivePerSecond+"}"), "-o", "json")
	assert.Equal(t, map[string][]string{"Gateway infra/back": {
		"infra/gw/a/defaults GET /read* toys.acme.com /write* toys.acme.com", "infra/gw/a/overrides /toys.Store/*",
	}}, renderedIDs(t, got))
}

func TestRenderFormatsAreEqual(t *testing.T) {
	policies := limitsAt("v2beta1", "app", "own", onToys, "limits: {a: "+fivePerSecond+"}")
	asJSON, asYAML := runRender(t, policies, "-o", "json"), runRender(t, policies, "-o", "yaml")
	text, err := yaml.YAMLToJSONStrict([]byte(asYAML.stdout))
	require.NoError(t, err)
	assert.JSONEq(t, asJSON.stdout, string(text))
	assert.Equal(t, runRender(t, policies), runRender(t, policies, "-o", "documents"))

	documents := yamlDocuments(t, []byte(runRender(t, policies).stdout))
	var list struct {
		Items []map[string]any `json:"items"`
	}
	require.NoError(t, json.Unmarshal([]byte(asJSON.stdout), &list))
	require.Len(t, list.Items, 2)
	require.Len(t, documents, 4, "two for each gateway")
	for i, item := range list.Items {
		for j, field := range []string{"gateway_actions", "limits"} {
			want, err := json.Marshal(map[string]any{field: item[field]})
			require.NoError(t, err)
			got, err := json.Marshal(documents[2*i+j])
			require.NoError(t, err)
			assert.JSONEq(t, string(want), string(got))
		}
	}
}

// The documents have the format and the field order of the RFC.
func TestRenderDocumentFormat(t *testing.T) {
	got := renderExampleFiles(t, "7-hostnames", "")
	require.Equal(t, exitOK, got.code, got.stderr)
	want, err := os.ReadFile("testdata/render/example-7.txt")
	require.NoError(t, err)
	assert.Equal(t, string(want), got.stdout)
}

func TestRenderErrors(t *testing.T) {
	assertErrors(t, []string{"render", "-f", "testdata/render/world.yaml"}, map[string]errorCase{
		"a table":                       {[]string{"-o", "table"}, exitError, `error: invalid value "table" for --output`},
		"an unknown format":             {[]string{"-o", "xml"}, exitError, `error: invalid value "xml" for --output`},
		"an object that does not exist": {[]string{"-n", "infra", "gateway/none"}, exitNegative, "error: Gateway infra/none not found"},
		"an unknown kind":               {[]string{"widget/none"}, exitError, `error: unknown kind "widget"`},
		"an unknown policy kind":        {[]string{"--kind", "Widget"}, exitError, `error: invalid --kind: unknown kind "Widget"`},
		"too many arguments":            {[]string{"gateway", "edge", "more"}, exitError, `error: unexpected argument "more"; usage: kubectl overrule render [KIND/NAME]`},
		"a name without a kind":         {[]string{"edge"}, exitError, `error: invalid argument "edge"`},
		"a file that does not exist":    {[]string{"-f", "testdata/none"}, exitError, "testdata/none: file does not exist"},
	})
	got := run(t, "", "effective", "-o", "documents", "-f", "testdata/render/world.yaml")
	assert.Equal(t, exitError, got.code, "no other command writes documents")
}

// The demo cluster only has limits in the format of v1.
func TestRenderOnCluster(t *testing.T) {
	got := runOnCluster(t, "render", "-n", "app", "httproute/toystore", "-o", "json")
	require.Equal(t, exitOK, got.code, got.stderr)
	assert.JSONEq(t, `{"apiVersion":"overrule.dev/v1alpha1","kind":"RenderedLimitsList","items":[]}`, got.stdout)
	assertLines(t, "warning: read grpcroutes\nno limits\n", got)
	got = run(t, "", "render", "--kubeconfig", write(t, "config", kubeconfig))
	assert.Equal(t, exitError, got.code)
	assert.Contains(t, got.stderr, "https://127.0.0.1:1")
}

// The page on the plugin shows the rendered documents of an example.
func TestCLIPageShowsRenderedDocuments(t *testing.T) {
	text, err := os.ReadFile("../../../docs/cli.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "$ kubectl overrule render -f network.yaml -f 1-minimal.yaml\n")
	require.True(t, found)
	block, _, found := strings.Cut(rest, "```")
	require.True(t, found)
	assert.Equal(t, renderExampleFiles(t, "1-minimal", "").stdout, block)
}

func TestRenderedLimitsSchema(t *testing.T) {
	right := renderExampleFiles(t, "7-hostnames", "", "-o", "json").stdout
	require.NoError(t, outputschema.Validate(t, api.KindRenderedLimitsList, right))
	for name, c := range map[string]struct{ part, instead string }{
		"an action of two types": {`"generic_key": {`, `"source_cluster": {"descriptor_key": "s"}, "generic_key": {`},
		"a rule without paths":   {`"paths": [`, `"methods": [`},
		"a limit of 0":           {`"max_value": 1000`, `"max_value": 0`},
		"a period of 0":          {`"seconds": 86400`, `"seconds": 0`},
		"an unknown field":       {`"hosts": [`, `"hostnames": [`},
		"no policy kind":         {`"policyKind": {`, `"kind": {`},
	} {
		t.Run(name, func(t *testing.T) {
			require.Contains(t, right, c.part)
			assert.Error(t, outputschema.Validate(t, api.KindRenderedLimitsList, strings.Replace(right, c.part, c.instead, 1)))
		})
	}
}
