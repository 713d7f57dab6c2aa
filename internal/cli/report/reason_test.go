package report

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	goldmarktext "github.com/yuin/goldmark/text"

	api "overrule.dev/overrule/api/v1alpha1"
)

var update = flag.Bool("update", false, "write the generated reasons and the golden files")

//go:generate go test -count=1 -run ^TestReasonsAreThoseOfTheDocs$ . -update

const (
	reasonsPage      = "../../../docs/reasons.md"
	generatedReasons = "zz_generated.reasons.go"
)

// The rules of SARIF are the sections of docs/reasons.md: with -update, the test
// generates them.
func TestReasonsAreThoseOfTheDocs(t *testing.T) {
	page, err := os.ReadFile(reasonsPage)
	require.NoError(t, err)
	want := reasonsSource(t, string(page))
	if *update {
		require.NoError(t, os.WriteFile(generatedReasons, want, 0o600))
		return
	}
	got, err := os.ReadFile(generatedReasons)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got), "%s is out of date: run make generate", generatedReasons)
}

func TestReasonsHaveAText(t *testing.T) {
	require.NotEmpty(t, reasons)
	for _, r := range reasons {
		t.Run(string(r.code), func(t *testing.T) {
			assert.NotEmpty(t, r.subject)
			assert.NotEmpty(t, r.summary)
			assert.Contains(t, r.text, "What to do:")
			assert.Contains(t, r.markdown, "*What to do:*")
			assert.NotRegexp(t, `\]\((?:#|[a-z])[^:)]*\)`, r.markdown, "no relative links")
		})
	}
}

func TestReasonsOfSomeCodes(t *testing.T) {
	i := reasonIndex(api.ReasonNoPath)
	require.GreaterOrEqual(t, i, 0)
	assert.Equal(t, Warning, reasons[i].level)
	assert.Equal(t, "A policy that is not in force on any path", reasons[i].subject)
	i = reasonIndex(api.ReasonOverrideRemoved)
	require.GreaterOrEqual(t, i, 0)
	assert.Equal(t, Error, reasons[i].level)
	i = reasonIndex(api.ReasonInvalid)
	require.GreaterOrEqual(t, i, 0)
	assert.Equal(t, "The policy cannot be read.", reasons[i].summary)
	assert.Contains(t, reasons[i].markdown, "[Fields of a limit](https://overrule.dev/docs/ratelimitpolicy#fields-of-a-limit)")
	assert.Contains(t, reasons[i].text, "\n- a value of the wrong type;\n- an unknown strategy;\n")
	assert.Equal(t, -1, reasonIndex("Unknown"))
	assert.Equal(t, "https://overrule.dev/docs/reasons#nopath", helpURI(api.ReasonNoPath))
}

var (
	reasonRow     = regexp.MustCompile(`(?m)^\| \[(\w+)\]\(#\w+\) \| ([^|]+) \| ([^|]+) \|$`)
	relativeLinks = regexp.MustCompile(`\]\(([\w-]*)(?:\.md)?(#[\w-]+)?\)`)
)

// reasonsSource returns the Go file with the reasons of the page.
func reasonsSource(t *testing.T, page string) []byte {
	t.Helper()
	_, sections, found := strings.Cut(page, "\n## The reasons\n")
	require.True(t, found)
	sections, _, _ = strings.Cut(sections, "\n## ")
	rows := reasonRow.FindAllStringSubmatch(page, -1)
	require.NotEmpty(t, rows)
	out := bytes.NewBufferString("// Code generated from docs/reasons.md by go generate. DO NOT EDIT.\n\npackage report\n\nvar reasons = []reason{\n")
	for _, row := range rows {
		_, section, found := strings.Cut(sections, "\n### "+row[1]+"\n")
		require.True(t, found, row[1])
		section, _, _ = strings.Cut(section, "\n### ")
		section = strings.TrimSpace(section)
		plain := plainText(section)
		level := "Error"
		if strings.HasPrefix(row[2], "Warn") {
			level = "Warning"
		}
		fmt.Fprintf(out, "\t{%q, %s, %q, %q, %q, %q},\n", row[1], level, sentence(plainText(row[3])),
			summaryOf(plain), plain, absoluteLinks(section))
	}
	out.WriteString("}\n")
	source, err := format.Source(out.Bytes())
	require.NoError(t, err)
	return source
}

// summaryOf returns the first paragraph of a plain text, without an introduction of the
// list after it.
func summaryOf(plain string) string {
	first, _, _ := strings.Cut(plain, "\n\n")
	if strings.HasSuffix(first, ":") {
		if i := strings.LastIndex(first, ". "); i > 0 {
			first = first[:i+1]
		}
	}
	return first
}

// absoluteLinks returns Markdown whose links to pages of the docs are absolute.
func absoluteLinks(markdown string) string {
	return relativeLinks.ReplaceAllStringFunc(markdown, func(link string) string {
		m := relativeLinks.FindStringSubmatch(link)
		if m[1] == "" {
			m[1] = "reasons"
		}
		return "](" + docs + m[1] + m[2] + ")"
	})
}

// plainText returns Markdown without its markup. A line of a paragraph is not wrapped.
func plainText(markdown string) string {
	source := []byte(markdown)
	parser := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser()
	var blocks []string
	for n := parser.Parse(goldmarktext.NewReader(source)).FirstChild(); n != nil; n = n.NextSibling() {
		blocks = append(blocks, plainBlock(n, source))
	}
	return strings.Join(blocks, "\n\n")
}

func plainBlock(n ast.Node, source []byte) string {
	switch n.Kind() {
	case ast.KindFencedCodeBlock, ast.KindCodeBlock:
		return strings.TrimRight(string(n.Lines().Value(source)), "\n")
	case ast.KindList:
		var items []string
		for i := n.FirstChild(); i != nil; i = i.NextSibling() {
			items = append(items, "- "+plainInlines(i, source))
		}
		return strings.Join(items, "\n")
	default:
		return plainInlines(n, source)
	}
}

func plainInlines(n ast.Node, source []byte) string {
	var out strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if t, ok := n.(*ast.Text); ok && entering {
			out.Write(t.Segment.Value(source))
			if t.SoftLineBreak() || t.HardLineBreak() {
				out.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return out.String()
}

// sentence returns a text with an upper-case letter at the start.
func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
