package printers

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/test/messages"
)

// printed prints a list of any kind.
func printList(t *testing.T, p Printer, data []byte) error {
	t.Helper()
	var head api.TypeMeta
	require.NoError(t, json.Unmarshal(data, &head))
	switch head.Kind {
	case api.KindEffectivePolicyList:
		l := read[api.EffectivePolicyList](t, data)
		return p.Effective(l)
	case api.KindExplanationList:
		l := read[api.ExplanationList](t, data)
		return p.Explanations(l)
	case api.KindOutcomeList:
		return p.Outcomes(read[api.OutcomeList](t, data).Items)
	case api.KindVerdictList:
		return p.Verdicts(read[api.VerdictList](t, data).Items)
	case api.KindReachList:
		return p.Reaches(read[api.ReachList](t, data).Items)
	case api.KindProfileList:
		return p.Profiles(read[api.ProfileList](t, data).Items)
	case api.KindViolationList:
		return p.Violations(read[api.ViolationList](t, data).Items)
	default:
		l := read[api.ChangeList](t, data)
		objects := []api.Verdict{{Object: api.Ref{Kind: "AuthPolicy", Namespace: "app", Name: "no-difference"}, Operation: "CREATE"}}
		for _, c := range l.Items {
			if last := objects[len(objects)-1]; last.Object != c.Object {
				objects = append(objects, api.Verdict{Object: c.Object, Operation: c.Operation})
			}
		}
		return p.Changes(l.Items, objects)
	}
}

func read[T any](t *testing.T, data []byte) T {
	t.Helper()
	var out T
	require.NoError(t, json.Unmarshal(data, &out))
	return out
}

func inputs(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*/input.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

func TestGoldenTablesAndTrees(t *testing.T) {
	for _, file := range inputs(t) {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, format := range []Format{Table, Tree} {
			var out bytes.Buffer
			require.NoError(t, printList(t, Printer{Out: &out, Format: format}, data))
			golden := filepath.Join(filepath.Dir(file), string(format)+".txt")
			if messages.Update() {
				require.NoError(t, os.WriteFile(golden, out.Bytes(), 0o600))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			assert.Equal(t, string(want), out.String(), golden)
		}
	}
}

func TestJSONAndYAMLRoundTrip(t *testing.T) {
	for _, file := range inputs(t) {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		var asJSON, asYAML bytes.Buffer
		require.NoError(t, printList(t, Printer{Out: &asJSON, Format: JSON}, data))
		require.NoError(t, printList(t, Printer{Out: &asYAML, Format: YAML}, data))
		assert.JSONEq(t, string(data), asJSON.String(), file)
		back, err := yaml.YAMLToJSONStrict(asYAML.Bytes())
		require.NoError(t, err)
		assert.JSONEq(t, string(data), string(back), file)
	}
}

// Colors only add escape codes.
func TestColorDoesNotChangeText(t *testing.T) {
	for _, file := range inputs(t) {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, format := range []Format{Table, Tree} {
			var painted, plain bytes.Buffer
			require.NoError(t, printList(t, Printer{Out: &painted, Format: format, Color: true}, data))
			require.NoError(t, printList(t, Printer{Out: &plain, Format: format}, data))
			assert.Contains(t, painted.String(), "\x1b[")
			assert.NotContains(t, plain.String(), "\x1b")
			assert.Equal(t, plain.String(), strip(painted.String()))
		}
	}
}

func strip(text string) string { return codes.ReplaceAllString(text, "") }

func TestEmptyListsAreNotNull(t *testing.T) {
	for name, show := range map[string]func(Printer) error{
		"effective":  func(p Printer) error { return p.Effective(api.EffectivePolicyList{}) },
		"explain":    func(p Printer) error { return p.Explanations(api.ExplanationList{}) },
		"outcome":    func(p Printer) error { return p.Outcomes(nil) },
		"check":      func(p Printer) error { return p.Verdicts(nil) },
		"diff":       func(p Printer) error { return p.Changes(nil, nil) },
		"reach":      func(p Printer) error { return p.Reaches(nil) },
		"profiles":   func(p Printer) error { return p.Profiles(nil) },
		"violations": func(p Printer) error { return p.Violations(nil) },
	} {
		var out bytes.Buffer
		require.NoError(t, show(Printer{Out: &out, Format: JSON}))
		assert.Contains(t, out.String(), `"items": []`, name)
		assert.NotContains(t, out.String(), "null", name)
		out.Reset()
		require.NoError(t, show(Printer{Out: &out, Format: Table}))
		require.NoError(t, show(Printer{Out: &out, Format: Tree}))
		assert.Empty(t, out.String(), name)
	}
}

// Names and values come from users and must not control the terminal.
func TestControlCharactersAreReplaced(t *testing.T) {
	bad := "a\x1b[2Jb\r\nc"
	ref := api.Ref{Kind: "AuthPolicy", Namespace: "app", Name: bad}
	for _, format := range []Format{Table, Tree} {
		var out bytes.Buffer
		p := Printer{Out: &out, Format: format}
		require.NoError(t, p.Verdicts([]api.Verdict{{Object: ref, Operation: "CREATE", Reasons: []api.Reason{{Code: "Invalid", Message: bad}}}}))
		require.NoError(t, p.Outcomes([]api.Outcome{{Policy: ref, State: api.Invalid, Message: bad}}))
		require.NoError(t, p.Explanations(api.ExplanationList{Items: []api.Explanation{{Notes: []string{bad}, Rules: []api.ExplainedRule{{Rule: bad}}}}}))
		require.NoError(t, p.Effective(api.EffectivePolicyList{Items: []api.EffectivePolicy{{Rules: []api.RuleOrigin{{Rule: bad, From: ref}}}}}))
		at := api.RequestAt{Path: []api.PathElement{{Kind: bad}}, Message: bad, Assumptions: []api.RequestAssumption{{Code: "Port", Message: bad}}, Candidates: []api.RequestCandidate{{Match: bad, After: "x"}}}
		require.NoError(t, p.Effective(api.EffectivePolicyList{Request: &api.ServedRequest{Request: bad, Message: bad, At: []api.RequestAt{at, {Served: true, Match: bad}}}}))
		require.NoError(t, p.Reaches([]api.Reach{{Policy: ref, Rules: []string{bad}, Routes: []api.Ref{ref}}}))
		require.NoError(t, p.Profiles([]api.ProfileInForce{{Profile: bad, Refused: []api.RefusedProfile{{Name: bad, Message: bad}}}}))
		require.NoError(t, p.Violations([]api.Violation{{Code: "RequirementUnmet", Rule: bad, Message: bad}}))
		require.NoError(t, p.Explanations(api.ExplanationList{Items: []api.Explanation{{Weakened: []api.WeakenedRule{{Rule: bad}, {ByRule: bad, How: "gate"}}}}}))
		require.NoError(t, p.Effective(api.EffectivePolicyList{Items: []api.EffectivePolicy{{Route: &api.EffectiveRoute{Fields: []api.EffectiveField{{Field: bad, From: &ref}, {Field: bad}}}}}}))
		assert.NotContains(t, out.String(), "\x1b")
		assert.NotContains(t, out.String(), "\r")
		assert.Contains(t, out.String(), "a [2Jb c")
	}
}

type failingWriter struct{}

var errFull = errors.New("no space left")

func (failingWriter) Write([]byte) (int, error) { return 0, errFull }

func TestWriteErrors(t *testing.T) {
	require.ErrorIs(t, Printer{Out: failingWriter{}, Format: JSON}.Verdicts(nil), errFull)
	require.ErrorIs(t, Printer{Out: failingWriter{}}.Manifest(Exported{}), errFull)
	err := Printer{Out: failingWriter{}, Format: JSON}.Effective(api.EffectivePolicyList{Items: []api.EffectivePolicy{{Spec: map[string]any{"a": func() {}}}}})
	assert.ErrorContains(t, err, "write *v1alpha1.EffectivePolicyList as json")
}

func TestLongValues(t *testing.T) {
	long := map[string]any{"text": strings.Repeat("ä", 100)}
	assert.Equal(t, "[äää…", strings.ReplaceAll(Cut(Compact([]string{long["text"].(string)}), 6), `"`, ""))
	assert.Equal(t, "<b>", strings.Trim(Compact("<b>"), `"`), "no HTML escapes")
	assert.Equal(t, []string{"text: " + strings.Repeat("ä", 100)}, Lines(long, 100))
	assert.Equal(t, []string{`[1,2]`}, Lines([]any{1, 2}, 100))
	assert.Equal(t, "?", Compact(func() {}))
}

func TestManyPathsAreCounted(t *testing.T) {
	var items []api.Change
	for i := range 25 {
		items = append(items, api.Change{
			Object: api.Ref{Kind: "AuthPolicy", Name: "p"}, Operation: "CREATE", PolicyKind: api.PolicyKind{Kind: "AuthPolicy"},
			Path: []api.PathElement{{Kind: "HTTPRoute", Name: string(rune('a' + i))}},
		})
	}
	var out bytes.Buffer
	require.NoError(t, Printer{Out: &out, Format: Table}.Changes(items, []api.Verdict{{Object: items[0].Object, Operation: "CREATE"}}))
	assert.Equal(t, 12, strings.Count(out.String(), "\n"))
	assert.Contains(t, out.String(), "and on 15 more paths\n")
}

// Different elements have different names.
func TestElementNames(t *testing.T) {
	path := []api.PathElement{
		{Kind: "GatewayClass", Name: "c"}, {Kind: "Namespace", Name: "infra"}, {Kind: "Gateway", Namespace: "infra", Name: "g"},
		{Kind: "ListenerSet", Namespace: "app", Name: "s"}, {Kind: "Listener", Namespace: "app", Name: "s", Section: "http"},
		{Kind: "HTTPRoute", Namespace: "app", Name: "r"}, {Kind: "HTTPRouteRule", Namespace: "app", Name: "r", Section: "rule-1", Member: "filters[1]"},
		{Kind: "Service", Namespace: "app", Name: "b", Section: "80"},
	}
	assert.Equal(t, "Gateway infra/g > ListenerSet app/s#http > HTTPRoute app/r#rule-1.filters[1] > Service app/b#80", api.PathText(path))
	assert.Equal(t, "HTTPRouteRule rule-1.filters[1]", elementName(path[6]))
	mesh := []api.PathElement{{Kind: "Service", Namespace: "app", Name: "s", Section: "80", Client: "shop"}, {Kind: "TCPRoute", Namespace: "app", Name: "r"}}
	assert.Equal(t, "Service app/s#80 (clients in shop) > TCPRoute app/r", api.PathText(mesh))
	assert.Equal(t, "Mesh", elementName(api.PathElement{Kind: "Mesh"}))
	assert.Equal(t, "Namespace app", api.PathText([]api.PathElement{{Kind: "Namespace", Name: "app"}}), "the last element is kept")
}

func TestTargetLine(t *testing.T) {
	ref := api.Ref{Kind: "Service", Namespace: "app", Name: "s"}
	by := api.Ref{Kind: "P", Namespace: "app", Name: "p"}
	for want, target := range map[string]api.Target{
		"target Service app/s#web: accepted":                            {Target: ref, Section: "web", Accepted: true},
		"target Service app/s port 80: Conflicted with P app/p":         {Target: ref, Port: 80, Reason: api.Conflicted, By: &by},
		"target Service with app=x: TargetNotFound":                     {Target: api.Ref{Kind: "Service"}, Selector: "app=x", Reason: api.TargetNotFound},
		"target Service app/s: TargetNotFound, no ReferenceGrant in ns": {Target: ref, Reason: api.TargetNotFound, Refused: "no ReferenceGrant in ns"},
	} {
		assert.Equal(t, want, strip(targetLine(target)))
	}
}

func TestEndsAt(t *testing.T) {
	for want, levels := range map[string][]api.LevelName{
		"Rule":              {api.LevelGateway, api.LevelRule},
		"Gateway, Service":  {api.LevelMesh, api.LevelGateway, api.LevelService},
		"Service":           {api.LevelMesh, api.LevelService},
		"ServiceNamespace":  {api.LevelServiceNamespace},
		"":                  nil,
		"Listener, Service": {api.LevelGateway, api.LevelListener, api.LevelServiceNamespace, api.LevelService},
	} {
		assert.Equal(t, want, endsAt(api.PolicyProfileSpec{Levels: levels}))
	}
}

func TestManyCandidatesAreCounted(t *testing.T) {
	at := api.RequestAt{Path: []api.PathElement{{Kind: "Gateway", Name: "g"}}, Served: true, Candidates: []api.RequestCandidate{{}}}
	for range 25 {
		at.Candidates = append(at.Candidates, api.RequestCandidate{Rule: api.PathElement{Kind: "HTTPRouteRule", Name: "r", Section: "rule-1"}, After: api.ByName})
	}
	var out bytes.Buffer
	require.NoError(t, Printer{Out: &out, Format: Table}.Explanations(api.ExplanationList{Request: &api.ServedRequest{At: []api.RequestAt{at}}}))
	assert.Equal(t, 20, strings.Count(out.String(), "not HTTPRoute r#rule-1: the route with the first namespace and name is first"))
	assert.Contains(t, out.String(), "and 5 more rules\n")
}

// Every criterion has a text.
func TestPrecedenceTexts(t *testing.T) {
	for _, p := range []api.Precedence{
		api.ByHostname, api.ByRegularExpression, api.ByExactPath, api.ByLongerPath, api.ByGRPCService, api.ByGRPCMethod, api.ByMethod,
		api.ByHeaders, api.ByQueryParams, api.ByOlderRoute, api.ByName, api.ByEarlierRule, api.ByListener,
	} {
		assert.Contains(t, precedenceText(p), " ")
	}
	assert.Equal(t, "New", precedenceText("New"))
}
