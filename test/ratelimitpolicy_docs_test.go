package test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const limitsPage = "docs/ratelimitpolicy.md"

// answers are the sections of the page for the examples, drawbacks and open
// questions of the RFC.
var answers = map[string][]string{
	"The examples of the RFC": {
		"Example 1", "Example 2", "Example 3", "Example 4", "Example 5", "Example 6", "Example 7", "Example 8",
	},
	"Its drawbacks": {
		"HTTPRoute editing occasionally required", "Risk of over-targeting", "Prone to consistency issues",
		"Two types of conditions",
	},
	"Its unresolved questions": {
		"1. Triggers of which some can be bound and some cannot", "2. What the namespace is",
		"3. Lists of hostnames in one condition", "4. Which operators",
		"5. A field for counters that are shared across clusters",
	},
}

func TestLimitsPageAnswersRFC(t *testing.T) {
	page := content(t, limitsPage)
	for part, titles := range answers {
		inside := section(t, page, "## ", part)
		for _, title := range titles {
			assert.NotEmpty(t, testsNamedIn(section(t, inside, "### ", title)), "%s, %s: a test of the answer", part, title)
		}
	}
}

// Each example has a link to its file.
func TestLimitsPageLinksExamples(t *testing.T) {
	page := content(t, limitsPage)
	files, err := filepath.Glob("../examples/ratelimitpolicy/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		switch name := filepath.Base(file); name {
		case "network.yaml", "3-route.yaml", "4-route.yaml": // used by the others
			assert.Contains(t, page, name)
		default:
			assert.Contains(t, page, "(../examples/ratelimitpolicy/"+name+")")
		}
	}
}

func TestLimitsPageNamesExistingTests(t *testing.T) {
	names := testsNamedIn(content(t, limitsPage))
	require.NotEmpty(t, names)
	tests := testNames(t)
	for _, name := range names {
		if strings.ToUpper(name[:1]) == name[:1] {
			assert.True(t, slices.Contains(tests, name), name)
			continue
		}
		_, err := os.Stat("cases/data/" + name + ".yaml")
		assert.NoError(t, err, "a case")
	}
}

// section returns the text below a heading.
func section(t *testing.T, page, level, title string) string {
	t.Helper()
	_, inside, found := strings.Cut(page, "\n"+level+title+"\n")
	require.True(t, found, "a section %q", title)
	inside, _, _ = strings.Cut(inside, "\n## ")
	if level == "### " {
		inside, _, _ = strings.Cut(inside, "\n### ")
	}
	return inside
}

var (
	held   = regexp.MustCompile(`(?ms)^\*Held by:\* (.*?)(?:\n\n|\z)`)
	row    = regexp.MustCompile("(?m)^\\|.*\\| ((?:`[a-z]+-[a-z-]+`(?:, )?)+) \\|$")
	quoted = regexp.MustCompile("`([^`]+)`")
	testFn = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
)

// testsNamedIn returns the tests and cases that a text names at its end, or in
// the last column of its tables.
func testsNamedIn(text string) []string {
	var out []string
	for _, found := range append(held.FindAllStringSubmatch(text, -1), row.FindAllStringSubmatch(text, -1)...) {
		for _, name := range quoted.FindAllStringSubmatch(found[1], -1) {
			out = append(out, name[1])
		}
	}
	return out
}

// testNames returns the names of all tests of the repository.
func testNames(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, file := range files(t, "_test.go") {
		for _, found := range testFn.FindAllStringSubmatch(content(t, file), -1) {
			out = append(out, found[1])
		}
	}
	return out
}
