package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	rendererhtml "github.com/yuin/goldmark/renderer/html"
	"golang.org/x/net/html"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/printers"
	"overrule.dev/overrule/test/tables"
)

// page is Markdown as GitHub's dialect renders it.
type page struct {
	rows      [][]string // the text of the cells of the table, without its head
	summaries []string
	blocks    []string // of code, with their language
	text      string   // outside of all these
	details   int
}

// elements are the HTML elements that a report consists of.
var elements = map[string]bool{
	"p": true, "strong": true, "b": true, "table": true, "thead": true, "tbody": true, "tr": true, "th": true, "td": true, "a": true, "code": true,
	"br": true, "details": true, "summary": true, "pre": true, "ul": true, "li": true,
}

// rendered renders Markdown. It fails if an element is not one of a report, is not closed,
// or if a link does not lead to the docs.
func rendered(t *testing.T, markdown string) page {
	t.Helper()
	var out bytes.Buffer
	engine := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(rendererhtml.WithUnsafe()))
	require.NoError(t, engine.Convert([]byte(markdown), &out))
	var p page
	var open []string
	var text strings.Builder
	for z := html.NewTokenizer(&out); z.Next() != html.ErrorToken; {
		token := z.Token()
		switch token.Type {
		case html.ErrorToken, html.DoctypeToken:
			require.Fail(t, "unexpected "+token.String())
		case html.CommentToken:
			require.Equal(t, "<!-- overrule -->", token.String())
		case html.TextToken:
			text.WriteString(token.Data)
		case html.StartTagToken, html.SelfClosingTagToken:
			checkElement(t, token)
			if token.Data == "br" {
				text.WriteString("\n")
				continue
			}
			if p.start(token.Data) {
				p.text += text.String()
				text.Reset()
			}
			open = append(open, token.Data)
		case html.EndTagToken:
			require.NotEmpty(t, open)
			require.Equal(t, open[len(open)-1], token.Data, "closed in order")
			open = open[:len(open)-1]
			if p.end(token.Data, text.String()) {
				text.Reset()
			}
		}
	}
	require.Empty(t, open, "all elements are closed")
	p.text += text.String()
	return p
}

func checkElement(t *testing.T, token html.Token) {
	t.Helper()
	require.True(t, elements[token.Data], "element %s", token)
	for _, a := range token.Attr {
		switch a.Key {
		case "href":
			require.True(t, strings.HasPrefix(a.Val, "https://overrule.dev/docs/reasons#"), a.Val)
		case "class":
			require.Contains(t, []string{"language-diff", "language-mermaid"}, a.Val)
		default:
			require.Fail(t, "attribute of "+token.String())
		}
	}
}

// start says whether a part of the page starts with the element.
func (p *page) start(element string) bool {
	switch element {
	case "details":
		p.details++
	case "tr":
		p.rows = append(p.rows, nil)
	}
	return element == "table" || element == "td" || element == "summary" || element == "pre"
}

// end says whether a part of the page ends with the element.
func (p *page) end(element, text string) bool {
	switch element {
	case "td":
		p.rows[len(p.rows)-1] = append(p.rows[len(p.rows)-1], text)
	case "summary":
		p.summaries = append(p.summaries, text)
	case "pre":
		p.blocks = append(p.blocks, text)
	case "thead":
		p.rows = nil
	case "th":
	default:
		return false
	}
	return true
}

// visible returns a text as a page is allowed to show it.
func visible(s, lineBreak string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\r', r == '\u2028', r == '\u2029':
			return []rune(lineBreak)[0]
		case r == '\t':
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r):
			return '\ufffd'
		}
		return r
	}, string([]rune(s)))
}

// assertShows asserts that a page shows a text, apart from invisible separators and space
// around it.
func assertShows(t *testing.T, want, got string) {
	t.Helper()
	plain := func(s string) string { return strings.TrimSpace(strings.ReplaceAll(s, zeroWidthSpace, "")) }
	assert.Equal(t, plain(want), plain(got))
}

func TestMarkdownShowsTextsAsTheyAre(t *testing.T) {
	for i, text := range hostileTexts {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			r := hostile()
			r.Findings, r.Changes, r.Objects = r.Findings[i:i+1], r.Changes[i:i+1], r.Objects[i:i+1]
			f := r.Findings[0]
			p := rendered(t, r.Markdown(CommentLimit))
			require.Len(t, p.rows, 1)
			require.Len(t, p.rows[0], 5)
			assertShows(t, visible(printers.Cut(text, nameLimit), "\n"), p.rows[0][1])
			assertShows(t, visible(printers.Cut(f.At.String(), nameLimit), " "), p.rows[0][3])
			message, _, found := strings.Cut(p.rows[0][4], "\non ")
			assert.Equal(t, text != "", found, "a path")
			assertShows(t, visible(printers.Cut(text, messageLimit), "\n"), message)
			assert.Equal(t, 2, p.details)
			assert.Len(t, p.blocks, 2)
			assert.Contains(t, p.blocks[0], "```` </details> <script>")
		})
	}
}

// GitHub looks for mentions and references in the text of a page, outside of code.
func TestMarkdownMentionsNoOne(t *testing.T) {
	for written, want := range tables.Read[map[string]string](t, "testdata/tables/markdown-mentions-no-one.yaml") {
		assert.Equal(t, want, text(written))
	}
	assert.Equal(t, "<code>&#64;\u200ba &#35;12 :tada: GH-1</code>", code("@a #12 :tada:\nGH-1"), "code has no references")
	assert.Empty(t, code(""))
}

func TestMarkdownSummaryLine(t *testing.T) {
	findings := func(severities ...Severity) []Finding {
		var out []Finding
		for i, s := range severities {
			out = append(out, Finding{Severity: s, Code: "Invalid", Object: ref("", "A", "", fmt.Sprint(i))})
		}
		return out
	}
	one := full().Changes[:1]
	for want, r := range map[string]Report{
		"Overrule: 1 denied, 2 warnings, 1 note; 3 effective policies change in 2 namespaces (1 loses authentication)": *full(),
		"Overrule: no findings; no effective policy changes":                                                           {Command: "check"},
		"Overrule: no findings; 1 effective policy changes in 1 namespace (1 loses authentication)":                    {Command: "check", Changes: one},
		"Overrule: 1 effective policy changes in 1 namespace (1 loses authentication)":                                 {Command: "diff", Changes: one},
		"Overrule: no effective policy changes":                                                                        {Command: "diff"},
		"Overrule: 2 denied; no effective policy changes":                                                              {Command: "check", Findings: findings(Error, Error)},
		"Overrule: 1 warning, 2 notes; no effective policy changes":                                                    {Command: "check", Findings: findings(Note, Warning, Note)},
		"Overrule: 1 denied; no effective policy changes":                                                              {Command: "check", Objects: []Object{{Ref: gwAuth}}},
		"Overrule: no violations":                                                                                      {Command: "violations"},
		"Overrule: 2 violations":                                                                                       {Command: "violations", Findings: findings(Error, Warning)},
	} {
		lines := strings.Split(r.Markdown(CommentLimit), "\n")
		assert.Equal(t, []string{"<!-- overrule -->", "**" + want + "**"}, lines[:2])
	}
}

func TestMarkdownWithoutFindingsAndChanges(t *testing.T) {
	allowed := Object{Ref: gwAuth, Operation: "UPDATE", Allowed: true}
	for want, r := range map[string]Report{
		"No object in the change affects effective policies.":                  {Command: "check"},
		"1 object was evaluated: it is allowed.":                               {Command: "check", Objects: []Object{allowed}},
		"2 objects were evaluated: all are allowed.":                           {Command: "check", Objects: []Object{allowed, {Ref: toystore, Allowed: true}}},
		"1 changed object was compared.":                                       {Command: "diff", Objects: []Object{allowed}},
		"2 changed objects were compared.":                                     {Command: "diff", Objects: []Object{allowed, {Ref: toystore, Allowed: true}}},
		"No effective policy violates a constraint or the schema of its kind.": {Command: "violations"},
	} {
		got := strings.Split(r.Markdown(CommentLimit), "\n")
		assert.Equal(t, want, got[3])
		assert.Len(t, got, 5)
	}
}

func TestMarkdownWordsOfSeverities(t *testing.T) {
	r := full()
	var words []string
	for _, row := range rendered(t, r.Markdown(CommentLimit)).rows {
		words = append(words, row[0])
	}
	assert.Equal(t, []string{"Denied", "Warning", "Warning", "Note"}, words)
	r.Command = "violations"
	assert.Equal(t, "Error", rendered(t, r.Markdown(CommentLimit)).rows[0][0])
}

func TestMarkdownGroupsPathsWithEqualChanges(t *testing.T) {
	p := rendered(t, full().Markdown(CommentLimit))
	assert.Equal(t, []string{
		"Diagram of the changed paths", "AuthPolicy on Gateway infra/edge#http > HTTPRoute app/toystore#admin: loses authentication",
		"RateLimitPolicy on Gateway infra/edge#http > HTTPRoute app/toystore#toys and 1 more path",
	}, p.summaries)
	assert.Contains(t, p.text, "HTTPRoute shop/cart#rule-1")

	r := &Report{Command: "diff"}
	for i := range 30 {
		c := full().Changes[1]
		c.Path = routePath("app", fmt.Sprintf("route-%d", i), "toys", 0)
		r.Changes = append(r.Changes, c)
	}
	p = rendered(t, r.Markdown(CommentLimit))
	assert.Contains(t, p.text, "route-19#toys\nand 10 more paths")
	assert.Len(t, p.summaries, 1)
}

func TestMarkdownShowsLongValuesInPart(t *testing.T) {
	var list []any
	for i := range 150 {
		list = append(list, fmt.Sprint(i))
	}
	lines := func(value any) []string { return ruleLines("+ ", "a", &api.RuleValue{Value: value, From: gwAuth}) }
	const from = "  from AuthPolicy infra/gw-auth"
	got := lines(list)
	require.Len(t, got, 102)
	assert.Equal(t, []string{"+ a =" + from, "+   - \"0\""}, got[:2])
	assert.Equal(t, "+   … 50 more lines", got[101])
	got = lines(strings.Repeat("x", 70000))
	require.Len(t, got, 1)
	assert.Len(t, []rune(got[0]), len([]rune("+ a = "+from))+500)
	assert.Equal(t, []string{"+ a = ?" + from}, lines(func() {}), "a value that is not JSON")
	assert.Equal(t, []string{"+ a = null" + from}, lines(nil))
}

func TestMarkdownOfNotes(t *testing.T) {
	r := &Report{Command: "check", Notes: []string{"--from is *empty*", "a note\nof two lines"}}
	assert.Equal(t, Marker+"\n**Overrule: no findings; no effective policy changes**\n\n> --from is &#42;empty&#42;\n\n> a note of two lines\n\nNo object in the change affects effective policies.\n", r.Markdown(CommentLimit))
	assert.NotContains(t, r.Markdown(60), "\n> ", "they are left out first")

	r = full()
	r.Remarks = []string{"fields are not validated"}
	markdown := r.Markdown(CommentLimit)
	assert.True(t, strings.HasSuffix(markdown, "\n</details>\n\n> fields are not validated\n"), "they come last")
	assert.LessOrEqual(t, len(r.Markdown(2000)), 2000)
}

func TestMarkdownOfPathsThatBeginOrEnd(t *testing.T) {
	c, policy := full().Changes[1], full().Findings[0].Object
	r := &Report{Command: "diff", Changes: []Change{c, c, c, c}}
	for i := range r.Changes {
		r.Changes[i].Path = routePath("app", fmt.Sprint("r", i), "toys", 0)
	}
	r.Changes[1].New = true
	r.Changes[1].Gained = []api.GainedRules{{Rules: "limits", Policy: policy}}
	r.Changes[2].Removed = true
	r.Changes[3].Was = routePath("app", "before", "toys", 0)
	const on = "RateLimitPolicy on Gateway infra/edge#http > HTTPRoute app/"
	p := rendered(t, r.Markdown(CommentLimit))
	assert.Equal(t, []string{on + "r0#toys and 1 more path", on + "r1#toys: new, gets limits of " + policy.String(), on + "r2#toys: removed"}, p.summaries)
	assert.Contains(t, p.text, "r3#toys, before the change on Gateway infra/edge#http > HTTPRoute app/before#toys")
}

// The number of paths that one object of a change affects is not what it is about in the
// end: a comment refers to the paths.
func TestMarkdownOfBlastRadius(t *testing.T) {
	r := full()
	f := &r.Findings[len(r.Findings)-1]
	require.Equal(t, api.ReasonBlastRadius, f.Code)
	message := func() string {
		rows := rendered(t, r.Markdown(CommentLimit)).rows
		return rows[len(rows)-1][4]
	}
	f.Severity = Warning
	assert.Equal(t, f.Message, message(), "it is no number of paths, but what a new route gets")
	f.CountsPaths = true
	assert.Equal(t, impactBelow, message())
	r.Changes = nil
	assert.Equal(t, f.Message, message(), "there are no paths")
	r = full()
	f = &r.Findings[len(r.Findings)-1]
	f.Severity = Note
	assert.Equal(t, f.Message, message())
}

func TestMarkdownOfRedactedValues(t *testing.T) {
	r := &Report{Command: "diff", Changes: []Change{{Change: api.Change{Rules: []api.RuleChange{{Rule: "a", After: &api.RuleValue{Redacted: true, From: api.Ref{Kind: "K", Name: "n"}}}}}}}}
	assert.Contains(t, r.Markdown(CommentLimit), "\n+ a = (redacted)  from K n\n")
}

// large returns a report whose Markdown has over 2 MB.
func large() *Report {
	r := full()
	long := strings.Repeat("long ", 350)
	for i := range 700 {
		f := r.Findings[1]
		f.Message = long
		f.Object.Name = fmt.Sprintf("policy-%d", i)
		r.Findings = append(r.Findings, f)
		c := full().Changes[0]
		c.Rules[0].Rule = f.Object.Name
		c.Rules[0].After.Value = []string{long[:400], long[:400], long[:400]}
		r.Changes = append(r.Changes, c)
	}
	return r
}

func TestMarkdownIsCutBetweenItsParts(t *testing.T) {
	r := large()
	markdown := r.Markdown(1 << 30)
	require.Greater(t, len(markdown), 2_000_000)
	whole := rendered(t, markdown)
	require.Len(t, whole.rows, len(r.Findings))
	for _, row := range whole.rows {
		require.Len(t, row, 5)
	}
	assert.Len(t, whole.summaries, 1+2+700)
	for _, limit := range []int{600, 2000, 5000, CommentLimit, SummaryLimit} {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			markdown := r.Markdown(limit)
			assert.LessOrEqual(t, len(markdown), limit)
			p := rendered(t, markdown)
			assert.Contains(t, p.text, "Overrule: 1 denied, 702 warnings, 1 note; 703 effective policies change in 2 namespaces")
			assert.Contains(t, p.text, "Not shown, because the text is limited in size: "+fmt.Sprint(len(r.Findings)-len(p.rows))+" findings")
			assert.Equal(t, append([][]string(nil), whole.rows[:len(p.rows)]...), p.rows, "the first ones are shown")
		})
	}
	assert.Equal(t, r.Markdown(SummaryLimit), r.Summary())
}

func TestMarkdownHasADiagramOfHalfTheSpaceAtMost(t *testing.T) {
	r := full()
	r.Diagram = strings.Repeat("x", 40000)
	assert.NotContains(t, r.Markdown(CommentLimit), "xxx")
	assert.Contains(t, rendered(t, r.Markdown(CommentLimit)).text, "limited in size: the diagram.")
	assert.Contains(t, r.Summary(), r.Diagram)
	r.Diagram = strings.Repeat("x", 30000)
	assert.Contains(t, r.Markdown(CommentLimit), r.Diagram)
}

func TestMarkdownCountsWhatIsCut(t *testing.T) {
	r := full()
	r.Diagram = strings.Repeat("x", diagramLimit+1)
	assert.Contains(t, r.Markdown(CommentLimit), "\nNot shown, because the text is limited in size: the diagram. The log of the job shows the rest.\n")
	for i := range 60 {
		c := full().Changes[0]
		c.Rules[0].Rule = strings.Repeat("x", 200) + fmt.Sprint(i)
		r.Changes = append(r.Changes, c)
	}
	p := rendered(t, r.Markdown(20000))
	hidden := len(r.Changes) - 1 - len(p.summaries)
	assert.Positive(t, hidden)
	assert.Contains(t, p.text, fmt.Sprintf("limited in size: the diagram and the changes of %d paths. The", hidden))
	_, left := full().changes(10)
	assert.Equal(t, 3, left, "each path of a group")
	_, left = full().table(full().rows(), 10)
	assert.Equal(t, 4, left)
	assert.Empty(t, cutText(0, 0, false))
	assert.Contains(t, cutText(1, 1, true), ": 1 finding, the diagram and the changes of 1 path. ")
}

// A report with any texts is rendered as itself, and is never longer than its limit.
func FuzzMarkdown(f *testing.F) {
	for _, text := range hostileTexts {
		f.Add(text, text, text, 3, 65536)
	}
	f.Add("a\\", "`", "~~~\n", 40, 1000)
	f.Fuzz(func(t *testing.T, message, name, value string, n, limit int) {
		n, limit = max(0, n)%50, 1200+max(0, limit)%100000
		r := &Report{Command: "check", Diagram: value}
		for i := range n {
			object := api.Ref{Kind: "AuthPolicy", Namespace: name, Name: name}
			r.Findings = append(r.Findings, Finding{Severity: Severity(i % 3), Code: "Invalid", Object: object, Message: message, At: Location{File: name, Line: i}})
			c := changed(object, routePath(name, name, name, i), []api.RuleChange{{Rule: name, After: &api.RuleValue{Value: []any{value, i}, From: object, Block: name}}})
			c.Was, c.Lost = routePath(name, value, name, i), []string{name}
			r.Changes = append(r.Changes, c)
		}
		markdown := r.Markdown(limit)
		assert.LessOrEqual(t, len(markdown), limit)
		p := rendered(t, markdown)
		for _, row := range p.rows {
			require.Len(t, row, 5)
			assertShows(t, visible(printers.Cut(message, messageLimit), "\n"), row[4])
		}
	})
}
