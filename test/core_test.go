package test

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// core are the packages that say what a write does.
var core = []string{"internal/guard", "internal/effective", "internal/explain", "internal/gateway", "internal/ratelimit", "internal/inflight", "webhook"}

// maxMethods is how many methods a type of them may have.
const maxMethods = 25

var listedFiles = regexp.MustCompile(`(?m)^//   - ([\w,\s/]+):`)

func TestCoreIsInTheOrderOfItsPackageComments(t *testing.T) {
	args := []string{"-export"}
	for _, folder := range core {
		args = append(args, "./"+folder)
	}
	all, err := goList("ImportPath,GoFiles,Export", args...)
	require.NoError(t, err)
	files := token.NewFileSet()
	imports := importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(all[path].Export) })
	for _, folder := range core {
		var parsed []*ast.File
		for _, name := range all[module+"/"+folder].GoFiles {
			f, err := parser.ParseFile(files, filepath.Join("..", folder, name), nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			parsed = append(parsed, f)
		}
		uses := make(map[*ast.Ident]types.Object)
		config := types.Config{Importer: imports}
		p, err := config.Check(folder, files, parsed, &types.Info{Uses: uses})
		require.NoError(t, err)

		comment, order := content(t, folder+"/doc.go"), []string(nil)
		for _, group := range listedFiles.FindAllStringSubmatch(comment, -1) {
			order = append(order, regexp.MustCompile(`\w+`).FindAllString(group[1], -1)...)
		}
		file := func(at token.Pos) string {
			return strings.TrimSuffix(filepath.Base(files.Position(at).Filename), ".go")
		}
		for used, what := range uses {
			if _, called := what.(*types.Func); called && what.Pkg() == p {
				from, to := slices.Index(order, file(used.Pos())), slices.Index(order, file(what.Pos()))
				assert.True(t, 0 <= to && to <= from, "%s calls %s: %s/doc.go lists %s later, or not at all", files.Position(used.Pos()), what.Name(), folder, file(what.Pos()))
			}
		}
		for _, name := range p.Scope().Names() {
			if of, ok := p.Scope().Lookup(name).Type().(*types.Named); ok {
				assert.LessOrEqual(t, of.NumMethods(), maxMethods, "methods of %s.%s", folder, name)
			}
		}
	}
}
