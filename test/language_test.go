package test

import (
	"fmt"
	"go/ast"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A replacement is a word that the repository does not use, and the usual one.
type replacement struct{ word, use string }

// replacements returns those of a sort, word, name or file, of testdata/language.txt.
func replacements(t *testing.T, sort string) []replacement {
	t.Helper()
	var out []replacement
	for line := range strings.Lines(content(t, "test/testdata/language.txt")) {
		if cells := strings.Split(strings.TrimSpace(line), "\t"); len(cells) == 3 && cells[0] == sort {
			out = append(out, replacement{cells[1], cells[2]})
		}
	}
	require.NotEmpty(t, out, sort)
	return out
}

// The changelog is left out: it names what was renamed.
func TestLanguage(t *testing.T) {
	words := replacements(t, "word")
	patterns := make([]*regexp.Regexp, len(words))
	for i, w := range words {
		patterns[i] = regexp.MustCompile(`(?i)\b(` + w.word + `)\b`)
	}
	var found []string
	for _, file := range slices.Concat(files(t, ".go"), files(t, ".md"), files(t, ".yaml"), files(t, "Makefile")) {
		if file == "CHANGELOG.md" {
			continue
		}
		n := 0
		for line := range strings.Lines(content(t, file)) {
			n++
			for i, p := range patterns {
				if word := p.FindString(line); word != "" {
					found = append(found, fmt.Sprintf("%s:%d: %q: use %s", file, n, word, words[i].use))
				}
			}
		}
	}
	assert.Empty(t, found)
}

func TestNamesAreThoseOfTheField(t *testing.T) {
	fileNames, names := map[string]string{}, map[string]string{}
	for _, r := range replacements(t, "file") {
		fileNames[r.word] = r.use
	}
	for _, r := range replacements(t, "name") {
		names[r.word] = r.use
	}
	var found []string
	for _, file := range files(t, ".go") {
		name := strings.TrimSuffix(strings.TrimSuffix(path.Base(file), ".go"), "_test")
		if use, ok := fileNames[name]; ok {
			found = append(found, fmt.Sprintf("%s: name it for %s", file, use))
		}
		ast.Inspect(parse(t, file), func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				if use, ok := names[strings.ToLower(id.Name)]; ok {
					found = append(found, fmt.Sprintf("%s: %s: use %s", file, id.Name, use))
				}
			}
			return true
		})
	}
	slices.Sort(found)
	assert.Empty(t, slices.Compact(found))
}
