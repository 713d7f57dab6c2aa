package test

import (
	"go/ast"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// warningNames finds the warnings of /readyz, each of which may become an Event, and
// warningRows those that the page has.
var warningNames = regexp.MustCompile(`warnings\["(\w+)"\] = |\.addWarning\("(\w+)", |map\[string\]func\(\) error\{"(\w+)": `)

var warningRows = regexp.MustCompile("\n\\| `(\\w+Warning)` \\| ")

func TestEveryEventHasARow(t *testing.T) {
	page := content(t, "docs/reference.md")
	var reasons []string
	for _, file := range files(t, ".go") {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "test/") {
			continue
		}
		ast.Inspect(parse(t, file), func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) < 6 {
				return true
			}
			if f, ok := call.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Eventf" && text(call.Args[3]) != "" {
				reasons = append(reasons, text(call.Args[3]))
			}
			return true
		})
		if !strings.HasPrefix(file, "internal/server/") {
			continue
		}
		for _, m := range warningNames.FindAllStringSubmatch(content(t, file), -1) {
			name := m[1] + m[2] + m[3]
			reasons = append(reasons, strings.ToUpper(name[:1])+name[1:]+"Warning")
		}
	}
	require.Contains(t, reasons, "WebhooksRepaired", "the Events are found")
	require.Contains(t, reasons, "CertificateWarning", "the warnings are found")
	for _, r := range reasons {
		assert.Contains(t, page, "\n| `"+r+"` | ")
	}
	for _, m := range warningRows.FindAllStringSubmatch(page, -1) {
		assert.Contains(t, reasons, m[1])
	}
}
