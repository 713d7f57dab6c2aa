package test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The docs have an entry for every reason, state, flag and metric of the code.

func TestEveryReasonHasASection(t *testing.T) {
	page := content(t, "docs/reasons.md")
	for _, code := range constants(t, "api/v1alpha1/reason.go", "ReasonCode") {
		assert.Contains(t, page, "\n### "+code+"\n", "a section of its own")
		assert.Contains(t, page, "\n| ["+code+"](#"+strings.ToLower(code)+") | ", "a row in the table of reasons")
	}
}

func TestEveryStateHasARow(t *testing.T) {
	page := content(t, "docs/semantics.md")
	for _, state := range constants(t, "api/v1alpha1/state.go", "State") {
		assert.Contains(t, page, "\n| `"+state+"` | ")
	}
}

func TestEveryAssumptionHasARow(t *testing.T) {
	page := content(t, "docs/cli.md")
	for _, code := range constants(t, "api/v1alpha1/request.go", "AssumptionCode") {
		assert.Contains(t, page, "\n| `"+code+"` | ")
	}
	page = content(t, "docs/json.md")
	for _, criterion := range constants(t, "api/v1alpha1/request.go", "Precedence") {
		assert.Contains(t, page, "`"+criterion+"`")
	}
}

func TestEveryFlagOfTheServerHasARow(t *testing.T) {
	page := content(t, "docs/reference.md")
	flags := names(t, "internal/server/flags.go")
	require.Contains(t, flags, "enforcement", "the flags are found")
	for _, name := range flags {
		assert.Contains(t, page, "\n| `--"+name+"` | ")
	}
}

func TestEveryMetricHasARow(t *testing.T) {
	page := content(t, "docs/reference.md")
	metrics := metricNames(t)
	require.Contains(t, metrics, "overrule_decisions_total", "the metrics are found")
	for _, name := range metrics {
		assert.Contains(t, page, "\n| `"+name+"` | ")
	}
}

var (
	fence   = regexp.MustCompile("(?ms)^```.*?^```$")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.+)$`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

func TestLinks(t *testing.T) {
	known := map[string][]string{} // the anchors of a page, by its path
	for _, file := range files(t, ".md") {
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(content(t, file), ""), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, ":") {
				continue // an external link
			}
			path := file
			if target != "" {
				path = filepath.Join(filepath.Dir(file), target)
			}
			if _, err := os.Stat(filepath.Join("..", path)); !assert.NoError(t, err, "%s links to %s", file, m[1]) {
				continue
			}
			if anchor == "" {
				continue
			}
			if known[path] == nil {
				known[path] = anchors(t, path)
			}
			assert.Contains(t, known[path], anchor, "%s links to %s", file, m[1])
		}
	}
}

var (
	step   = regexp.MustCompile(`(?m)^\d+\. (?:.|\n {3})+`)
	method = regexp.MustCompile("`([a-zA-Z]+)\\.([a-zA-Z]+)`")
)

// A method that a step of the tour names is in one of the files that the step
// links to.
func TestTourNamesMethodsOfItsFiles(t *testing.T) {
	_, tour, _ := strings.Cut(content(t, "docs/architecture.md"), "\n## A tour")
	tour, _, _ = strings.Cut(tour, "\n## ")
	steps := step.FindAllString(tour, -1)
	require.NotEmpty(t, steps)
	for _, s := range steps {
		var code strings.Builder
		for _, m := range link.FindAllStringSubmatch(s, -1) {
			code.WriteString(content(t, filepath.Join("docs", m[1])))
		}
		for _, m := range method.FindAllStringSubmatch(s, -1) {
			declaration := regexp.MustCompile(`(?m)^func \(\w+ \*?` + m[1] + `(?:\[\w+\])?\) ` + m[2] + `\(`)
			assert.True(t, declaration.MatchString(code.String()), "%s.%s, of the step %s", m[1], m[2], s)
		}
	}
}

// The package comment of a large package lists its files, in doc.go, and no file that does
// not exist. Packages of the API are read by their types.
func TestPackageCommentsListTheFiles(t *testing.T) {
	folders := map[string][]string{}
	for _, file := range files(t, ".go") {
		name := strings.TrimSuffix(filepath.Base(file), ".go")
		if !strings.HasSuffix(name, "_test") && !strings.HasPrefix(name, "zz_generated") && !strings.HasPrefix(file, "api/") {
			folders[filepath.Dir(file)] = append(folders[filepath.Dir(file)], name)
		}
	}
	checked := 0
	for folder, names := range folders {
		if len(names) <= 6 { // with doc.go
			continue
		}
		checked++
		comment, _, _ := strings.Cut(content(t, filepath.Join(folder, "doc.go")), "\npackage ")
		words := regexp.MustCompile(`\w+`).FindAllString(comment, -1)
		for _, name := range names {
			assert.True(t, name == "doc" || slices.Contains(words, name), "%s/doc.go does not list %s.go", folder, name)
		}
		for _, m := range regexp.MustCompile(`\w+\.go\b`).FindAllString(comment, -1) {
			assert.FileExists(t, filepath.Join("..", folder, m), "%s/doc.go", folder)
		}
	}
	require.NotZero(t, checked)
}

var typed = regexp.MustCompile(`(?m)^\$ (.+)$`)

func TestReadmeCommandsAreInDemo(t *testing.T) {
	story := content(t, "test/demo/story.go")
	commands := typed.FindAllStringSubmatch(content(t, "README.md"), -1)
	require.NotEmpty(t, commands)
	for _, m := range commands {
		assert.Contains(t, story, strconv.Quote(m[1]), "make demo runs it")
	}
}

var example = regexp.MustCompile(`examples/[\w./-]*[\w-]`)

func TestExamplesInDocsExist(t *testing.T) {
	for _, file := range files(t, ".md") {
		for _, path := range example.FindAllString(content(t, file), -1) {
			_, err := os.Stat(filepath.Join("..", path))
			assert.NoError(t, err, "%s names %s", file, path)
		}
	}
}

// anchors returns the anchors that GitHub generates for the headings of a page.
func anchors(t *testing.T, file string) []string {
	t.Helper()
	var out []string
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(content(t, file), ""), -1) {
		text := dropped.ReplaceAllString(strings.ToLower(m[1]), "")
		out = append(out, strings.ReplaceAll(text, " ", "-"))
	}
	return out
}

// content returns a file of the repository.
func content(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", file))
	require.NoError(t, err)
	return string(text)
}

// files returns the files of the repository with that ending.
func files(t *testing.T, ending string) []string {
	t.Helper()
	var out []string
	require.NoError(t, fs.WalkDir(os.DirFS(".."), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (path == "bin" || path == ".git"):
			return fs.SkipDir
		case !d.IsDir() && strings.HasSuffix(path, ending):
			out = append(out, path)
		}
		return nil
	}))
	return out
}

func parse(t *testing.T, file string) *ast.File {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", file), nil, 0)
	require.NoError(t, err)
	return parsed
}

// constants returns the values of the constants of that type in a file.
func constants(t *testing.T, file, typeName string) []string {
	t.Helper()
	var out []string
	ast.Inspect(parse(t, file), func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if ident, ok := spec.Type.(*ast.Ident); ok && ident.Name == typeName {
			for _, v := range spec.Values {
				out = append(out, text(v))
			}
		}
		return true
	})
	require.NotEmpty(t, out, "constants of type %s in %s", typeName, file)
	return out
}

// names returns the names of the flags that a file binds with calls such as
// f.StringVar(&value, "name", …) and cliflag.EnumVar(f, &value, "name", …): the
// first string of a call.
func names(t *testing.T, file string) []string {
	t.Helper()
	var out []string
	ast.Inspect(parse(t, file), func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if f, ok := call.Fun.(*ast.SelectorExpr); ok && strings.HasSuffix(f.Sel.Name, "Var") {
			isName := func(e ast.Expr) bool { return text(e) != "" }
			if i := slices.IndexFunc(call.Args, isName); i >= 0 {
				out = append(out, text(call.Args[i]))
			}
		}
		return true
	})
	return out
}

var metric = regexp.MustCompile(`^overrule_[a-z_]+$`)

// metricNames returns the names of metrics in the code, without tests.
func metricNames(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, file := range files(t, ".go") {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "test/") {
			continue
		}
		ast.Inspect(parse(t, file), func(n ast.Node) bool {
			if e, ok := n.(*ast.BasicLit); ok && metric.MatchString(text(e)) {
				out = append(out, text(e))
			}
			return true
		})
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// text returns the value of a string literal, or "".
func text(e ast.Expr) string {
	literal, ok := e.(*ast.BasicLit)
	if !ok || literal.Kind != token.STRING {
		return ""
	}
	value, err := strconv.Unquote(literal.Value)
	if err != nil {
		return ""
	}
	return value
}
