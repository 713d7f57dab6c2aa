package test

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	longTest = regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\) \{\n\tenv\.Long\(t\)$`)
	// longRun is a call of hack/long: the tests that it selects, if not all, and the packages.
	longRun = regexp.MustCompile(`\btests (?:'?-run=(\S+?)'? )?((?:\./\S+ ?)+)`)
)

// A test that make test-all leaves out is in one of the long parts.
func TestEachLongTestHasAPart(t *testing.T) {
	script, err := os.ReadFile("../hack/long")
	require.NoError(t, err)
	runs := longRun.FindAllStringSubmatch(string(script), -1)
	found := 0
	for _, file := range files(t, "_test.go") {
		text, err := os.ReadFile(filepath.Join("..", file))
		require.NoError(t, err)
		for _, m := range longTest.FindAllStringSubmatch(string(text), -1) {
			found++
			assert.True(t, slices.ContainsFunc(runs, func(run []string) bool {
				return slices.Contains(strings.Fields(run[2]), "./"+path.Dir(file)) && regexp.MustCompile(run[1]).MatchString(m[1])
			}), "%s in %s: add it to hack/long", m[1], file)
		}
	}
	assert.Positive(t, found)
}
