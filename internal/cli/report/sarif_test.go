package report

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/test/tables"
)

// withoutRules returns a SARIF log without the texts of its rules, which are those of
// docs/reasons.md.
func withoutRules(t *testing.T, log []byte) []byte {
	t.Helper()
	var out map[string]any
	require.NoError(t, json.Unmarshal(log, &out))
	driver := out["runs"].([]any)[0].(map[string]any)["tool"].(map[string]any)["driver"].(map[string]any)
	for _, r := range driver["rules"].([]any) {
		rule := r.(map[string]any)
		for _, key := range []string{"help", "fullDescription", "shortDescription", "defaultConfiguration"} {
			delete(rule, key)
		}
	}
	text, err := json.MarshalIndent(out, "", " ")
	require.NoError(t, err)
	return append(text, '\n')
}

// sarifLog returns the log of a report. It is valid according to the official schema.
func sarifLog(t *testing.T, r *Report) *sarif.Run {
	t.Helper()
	data, err := sarifText(r)
	require.NoError(t, err)
	log, err := sarif.FromBytes(data, sarif.WithStrictValidation())
	require.NoError(t, err)
	require.NoError(t, log.Validate())
	require.Len(t, log.Runs, 1)
	return log.Runs[0]
}

func TestSARIFIsValid(t *testing.T) {
	for name, r := range map[string]*Report{
		"full": full(), "violations": violations(), "empty": {}, "hostile": hostile(), "zero finding": {Findings: []Finding{{}}},
	} {
		t.Run(name, func(t *testing.T) { sarifLog(t, r) })
	}
}

func TestSARIFTool(t *testing.T) {
	for version, want := range map[string]string{"v1.4.0": "1.4.0", "1.4.0-rc.1+abc": "1.4.0-rc.1+abc", "devel": "", "": "", "v1.2": ""} {
		driver := sarifLog(t, &Report{Version: version}).Tool.Driver
		assert.Equal(t, "kubectl-overrule", *driver.Name)
		assert.Equal(t, "https://overrule.dev/docs/cli", *driver.InformationURI)
		if want == "" {
			assert.Nil(t, driver.SemanticVersion, version)
			continue
		}
		require.NotNil(t, driver.SemanticVersion, version)
		assert.Equal(t, want, *driver.SemanticVersion)
		assert.Equal(t, version, *driver.Version)
	}
}

func TestSARIFRules(t *testing.T) {
	run := sarifLog(t, &Report{Findings: []Finding{{Code: "Overloaded", Severity: Warning}, {Code: api.ReasonNoPath}, {Code: "Overloaded"}}})
	rules := run.Tool.Driver.Rules
	require.Len(t, rules, len(reasons)+1)
	for i, r := range reasons {
		rule := rules[i]
		assert.Equal(t, string(r.code), *rule.ID)
		assert.Equal(t, "https://overrule.dev/docs/reasons#"+strings.ToLower(string(r.code)), *rule.HelpURI)
		assert.LessOrEqual(t, len([]rune(*rule.ShortDescription.Text)), 1024)
		assert.LessOrEqual(t, len([]rune(*rule.FullDescription.Text)), 1024)
		assert.Equal(t, r.text, *rule.Help.Text)
		assert.Equal(t, r.markdown, *rule.Help.Markdown)
		assert.Equal(t, r.level.String(), rule.DefaultConfiguration.Level)
	}
	other := rules[len(reasons)]
	assert.Equal(t, []string{"Overloaded", "Overloaded", "Overloaded", "error"}, []string{*other.ID, *other.ShortDescription.Text, *other.Help.Text, other.DefaultConfiguration.Level})
	assert.Nil(t, other.HelpURI)
	for _, r := range run.Results {
		assert.Equal(t, *r.RuleID, *rules[r.RuleIndex].ID)
	}
}

func TestSARIFHasThe5000MostSevereResults(t *testing.T) {
	r := &Report{}
	for i := range 5001 {
		r.Findings = append(r.Findings, Finding{Severity: Warning, Code: "NoPath", Message: fmt.Sprintf("m%d", i)})
	}
	r.Findings = append(r.Findings, Finding{Severity: Error, Code: "Invalid", Message: "first"})
	data, err := sarifText(r)
	require.NoError(t, err)
	log, err := sarif.FromBytes(data)
	require.NoError(t, err)
	run := log.Runs[0]
	require.Len(t, run.Results, 5000)
	assert.Equal(t, "first", *run.Results[0].Message.Text)
	assert.Equal(t, "m4998", *run.Results[4999].Message.Text)
	require.Len(t, run.Invocations, 1)
	assert.True(t, *run.Invocations[0].ExecutionSuccessful)
	require.Len(t, run.Invocations[0].ToolExecutionNotifications, 1)
	notification := run.Invocations[0].ToolExecutionNotifications[0]
	assert.Equal(t, "warning", notification.Level)
	assert.Equal(t, "2 findings are not in this log, which contains the 5000 most severe", *notification.Message.Text)
}

func TestSARIFLocations(t *testing.T) {
	for name, c := range tables.Read[map[string]struct {
		At   Location
		Want string // uri, uriBaseId, startLine, startColumn, endColumn
	}](t, "testdata/tables/sarif-locations.yaml") {
		t.Run(name, func(t *testing.T) {
			run := sarifLog(t, &Report{Findings: []Finding{{Code: "Invalid", Object: gwAuth, Message: "m", At: c.At}}})
			location := run.Results[0].Locations[0]
			require.Len(t, location.LogicalLocations, 1)
			assert.Equal(t, "AuthPolicy.kuadrant.io infra/gw-auth", *location.LogicalLocations[0].FullyQualifiedName)
			assert.Equal(t, c.Want, place(location.PhysicalLocation))
		})
	}
}

func place(p *sarif.PhysicalLocation) string {
	if p == nil {
		return ""
	}
	base, region := "", sarif.NewRegion()
	if p.ArtifactLocation.URIBaseID != nil {
		base = *p.ArtifactLocation.URIBaseID
	}
	if p.Region != nil {
		region = p.Region
	}
	value := func(n *int) int {
		if n == nil {
			return 0
		}
		return *n
	}
	return fmt.Sprint(*p.ArtifactLocation.URI, " ", base, " ", value(region.StartLine), " ", value(region.StartColumn), " ", value(region.EndColumn))
}

func TestSARIFTextHasNoPlaceholdersAndLinks(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                  "plain",
		"spec.rules[0]: x":       "spec.rules[0]: x",
		`{0} and {"a":1}`:        `{{0}} and {{"a":1}}`,
		"[text](1)":              `\[text\](1)`,
		`a [b] c [d](https://e)`: `a \[b\] c \[d\](https://e)`,
		`\[a\](1)`:               `\\\[a\\\](1)`,
		`a\[b`:                   `a\\\[b`,
		`C:\dir`:                 `C:\dir`,
		"a\xffb":                 "a\uFFFDb",
	} {
		assert.Equal(t, want, sarifMessage(text), text)
	}
}

func TestFingerprints(t *testing.T) {
	base := full().Findings[2]
	changed := func(change func(*Finding)) Finding {
		f := full().Findings[2]
		change(&f)
		return f
	}
	fingerprint := func(i int, findings ...Finding) string { return (&Report{Findings: findings}).rows()[i].fingerprint }
	for name, f := range map[string]Finding{
		"message":   changed(func(f *Finding) { f.Message = "other" }),
		"line":      changed(func(f *Finding) { f.At.Line = 99 }),
		"file":      changed(func(f *Finding) { f.At.File = "other.yaml" }),
		"operation": changed(func(f *Finding) { f.Operation = "UPDATE" }),
		"severity":  changed(func(f *Finding) { f.Severity = Error }),
		"position":  changed(func(f *Finding) { f.Path = routePath("app", "toystore", "rule-7", 6) }),
	} {
		assert.Equal(t, fingerprint(0, base), fingerprint(0, f), name)
	}
	for name, f := range map[string]Finding{
		"code":        changed(func(f *Finding) { f.Code = api.ReasonInvalid }),
		"object":      changed(func(f *Finding) { f.Object.Name = "other" }),
		"policy kind": changed(func(f *Finding) { f.PolicyKind.Kind = "Other" }),
		"route":       changed(func(f *Finding) { f.Path = routePath("app", "cart", "rule-2", 1) }),
		"rule name":   changed(func(f *Finding) { f.Path = routePath("app", "toystore", "toys", 1) }),
		"rule":        changed(func(f *Finding) { f.Rule = "rules.authentication.sso" }),
		"policy":      changed(func(f *Finding) { f.Policy = &gwAuth }),
		"no policy":   changed(func(f *Finding) { f.Policy = nil }),
	} {
		assert.NotEqual(t, fingerprint(0, base), fingerprint(0, f), name)
	}
	hash, first := strings.CutSuffix(fingerprint(1, full().Findings[0], base, base), ":1")
	assert.True(t, first)
	assert.Equal(t, hash+":2", fingerprint(2, full().Findings[0], base, base), "equal findings are numbered")
}

func TestFingerprintsIgnoreTheIndexOfAListItem(t *testing.T) {
	at := func(index, member string) api.PathElement {
		i := 0
		return withoutIndex(api.PathElement{Kind: "HTTPRouteRule", Section: index, Index: &i, Member: member})
	}
	assert.Equal(t, at("toys", "filters[1]"), at("toys", "filters[4]"))
	assert.NotEqual(t, at("toys", "filters[1]"), at("toys", "matches[1]"))
	assert.Equal(t, "rule-2", at("rule-2", "").Section, "the name of the first rule")
}

var (
	sarifUnescape    = strings.NewReplacer(`\\`, `\`, `\[`, `[`, `\]`, `]`)
	sarifPlaceholder = strings.NewReplacer(`{{`, `{`, `}}`, `}`)
	sarifLinks       = regexp.MustCompile(`(^|[^\\])\]\(`)
)

// Any text is a message without links and placeholders, which a viewer shows as it is.
func FuzzSARIFText(f *testing.F) {
	for _, text := range hostileTexts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := sarifMessage(text)
		assert.NotRegexp(t, sarifLinks, got)
		assert.Equal(t, strings.ToValidUTF8(text, "\ufffd"), sarifPlaceholder.Replace(sarifUnescape.Replace(got)))
	})
}
