package report

import (
	"errors"
	"strings"
	"testing"

	"github.com/joshdk/go-junit"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
)

// testcase is a test case as another library reads it.
type testcase struct{ class, name, status, message, kind, text, output string }

func testcases(t *testing.T, r *Report, warningsFail bool) []testcase {
	t.Helper()
	r.WarningsFail = warningsFail
	data, err := junitText(r)
	require.NoError(t, err)
	requireJUnit(t, data)
	suites, err := junit.Ingest(data)
	require.NoError(t, err)
	require.Len(t, suites, 1)
	assert.Equal(t, strings.TrimSpace("overrule "+r.Command), strings.TrimSpace(suites[0].Name))
	assert.Equal(t, len(suites[0].Tests), suites[0].Totals.Tests)
	var out []testcase
	failed := 0
	for _, c := range suites[0].Tests {
		got := testcase{class: c.Classname, name: c.Name, status: string(c.Status), message: c.Message, output: c.SystemOut}
		if failure := (junit.Error{}); errors.As(c.Error, &failure) {
			got.kind, got.text = failure.Type, failure.Body
			failed++
		}
		out = append(out, got)
	}
	assert.Equal(t, failed, suites[0].Totals.Failed)
	assert.NotEmpty(t, out, "some systems reject a report without test cases")
	return out
}

func TestJUnit(t *testing.T) {
	denied := Finding{Severity: Error, Code: "UnsetOverride", Object: adminAuth, Operation: "CREATE", Message: "first\nsecond", At: Location{File: "a.yaml", Line: 2, Column: 3}}
	warning := Finding{Severity: Warning, Code: "NoPath", Object: adminAuth, Operation: "CREATE", Message: "warned"}
	object := func(allowed bool) []Object { return []Object{{Ref: adminAuth, Operation: "CREATE", Allowed: allowed}} }
	const class, name = "AuthPolicy", "app/toystore-admin-auth (CREATE)"
	const warned = "warning: NoPath: AuthPolicy app/toystore-admin-auth: warned"
	for title, c := range map[string]struct {
		report       Report
		warningsFail bool
		want         []testcase
	}{
		"a denied object fails with all of its findings, the most severe first": {
			Report{Command: "check", Objects: object(false), Findings: []Finding{warning, denied}}, false,
			[]testcase{{class, name, "failed", "first", "UnsetOverride", "error: UnsetOverride: AuthPolicy app/toystore-admin-auth: first second (a.yaml:2:3)\n" + warned, ""}},
		},
		"a warning is output": {
			Report{Command: "check", Objects: object(true), Findings: []Finding{warning}}, false,
			[]testcase{{class, name, "passed", "", "", "", warned}},
		},
		"a warning fails if it has to": {
			Report{Command: "check", Objects: object(true), Findings: []Finding{warning}}, true,
			[]testcase{{class, name, "failed", "warned", "NoPath", warned, ""}},
		},
		"a denied object without findings fails": {
			Report{Command: "check", Objects: object(false)}, false, []testcase{{class, name, "failed", "denied", "Denied", "", ""}},
		},
		"an object that only a finding names has a test case": {
			Report{Command: "check", Findings: []Finding{denied}}, false,
			[]testcase{{class, name, "failed", "first", "UnsetOverride", "error: UnsetOverride: AuthPolicy app/toystore-admin-auth: first second (a.yaml:2:3)", ""}},
		},
		"an operation is another test case": {
			Report{Command: "check", Objects: []Object{{Ref: adminAuth, Operation: "DELETE", Allowed: true}}, Findings: []Finding{warning}}, false,
			[]testcase{{class, "app/toystore-admin-auth (DELETE)", "passed", "", "", "", ""}, {class, name, "passed", "", "", "", warned}},
		},
		"an object that is not changed has no operation": {
			Report{Command: "check", Objects: []Object{{Ref: gwAuth, Allowed: true}}}, false, []testcase{{class, "infra/gw-auth", "passed", "", "", "", ""}},
		},
		"no objects":    {Report{Command: "check"}, false, []testcase{{"check", "no changed objects", "passed", "", "", "", ""}}},
		"no violations": {Report{Command: "violations"}, false, []testcase{{"violations", "no violations", "passed", "", "", "", ""}}},
		"a violation fails": {
			Report{Command: "violations", Findings: []Finding{{Code: "OverrideWeakened", Object: gwAuth, Rule: "sso", Path: routePath("app", "toystore", "toys", 0), Message: "m"}}}, false,
			[]testcase{{class, "OverrideWeakened infra/gw-auth on Gateway infra/edge#http > HTTPRoute app/toystore#toys sso", "failed", "m", "OverrideWeakened",
				"error: OverrideWeakened: AuthPolicy infra/gw-auth: m (on Gateway infra/edge#http > HTTPRoute app/toystore#toys)", ""}},
		},
		"a violation with a warning passes": {
			Report{Command: "violations", Findings: []Finding{{Severity: Warning, Code: "Invalid", Object: gwAuth, Message: "m"}}}, false,
			[]testcase{{class, "Invalid infra/gw-auth", "passed", "", "", "", "warning: Invalid: AuthPolicy infra/gw-auth: m"}},
		},
		"an object of a diff passes with its number of changes": {
			Report{Command: "diff", Objects: append(object(true), Object{Ref: gwAuth, Operation: "UPDATE", Allowed: true}), Changes: []Change{{Change: api.Change{Object: adminAuth, Operation: "CREATE"}}, {Change: api.Change{Object: adminAuth, Operation: "CREATE"}}}}, false,
			[]testcase{{class, name, "passed", "", "", "", "2 effective policies change"}, {class, "infra/gw-auth (UPDATE)", "passed", "", "", "", "no effective policy changes"}},
		},
	} {
		t.Run(title, func(t *testing.T) { assert.Equal(t, c.want, testcases(t, &c.report, c.warningsFail)) })
	}
}

func TestJUnitOfHostileTexts(t *testing.T) {
	got := testcases(t, hostile(), true)
	assert.Len(t, got, len(hostileTexts))
	r := hostile()
	r.Command = "violations"
	assert.Len(t, testcases(t, r, false), len(hostileTexts))
}

func TestXMLTextReplacesWhatXMLCannotContain(t *testing.T) {
	assert.Equal(t, "a\ufffd\ufffd\t\n\ufffdb\ufffd\ufffd\ufffdé]]>", xmlText("a\x00\x1b\t\n\rb\uffff\x85\u0085é]]>"))
}
