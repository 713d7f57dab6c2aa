package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The packages of a module, and their tests.
var packages = map[string]string{
	"good":  `func TestGood(t *testing.T) {}`,
	"mixed": `func TestGood(t *testing.T) {}; func TestBad(t *testing.T) { t.Run("sub", func(t *testing.T) { t.Error("it is bad") }) }`,
	"flaky": `func TestFlaky(t *testing.T) { if os.Mkdir(os.Getenv("MARK"), 0o700) == nil { t.Error("at first") } }`,
	"crash": `func TestCrash(t *testing.T) { go panic("crashed"); select {} }`,
	"build": `func TestBuild(t *testing.T) { undefined() }`,
}

// tested runs packages of a module, and returns the output and whether the run passed.
func tested(t *testing.T, names ...string) (string, bool) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("go.mod", "module m\n\ngo 1.26\n")
	var groups []group
	for _, name := range names {
		write(name+"/a_test.go", "package a\nimport (\"os\"; \"testing\")\nvar _ = os.Getenv\n"+packages[name])
		groups = append(groups, group{dir, []string{"-vet=off"}, []string{"m/" + name}})
	}
	t.Setenv("MARK", filepath.Join(dir, "mark"))
	var out bytes.Buffer
	r := &runner{out: &out, test: goTest}
	r.run(t.Context(), groups)
	passed := r.report()
	return out.String(), passed
}

func TestAFlakyTestPassesAndIsListed(t *testing.T) {
	out, passed := tested(t, "flaky", "good")
	assert.True(t, passed, out)
	_, end, found := strings.Cut(out, "flaky: m/flaky.TestFlaky ")
	require.True(t, found, out)
	assert.Contains(t, end, "at first")
	assert.True(t, strings.HasSuffix(end, "\n2 passed, 0 failed\n"), end)
}

func TestTheFirstFailureIsLast(t *testing.T) {
	out, passed := tested(t, "mixed", "flaky", "crash", "build")
	assert.False(t, passed, out)
	for _, part := range []string{"failed: m/mixed.TestBad\n", "failed: m/crash\n", "failed: m/build\n", "\n1 passed, 3 failed\n", "panic: crashed", "undefined: undefined"} {
		assert.Contains(t, out, part)
	}
	assert.NotContains(t, out, "failed: m/flaky")
	_, end, found := strings.Cut(out, "== the first failure: m/mixed.TestBad\n")
	require.True(t, found, out)
	assert.Contains(t, end, "it is bad")
	assert.NotContains(t, end, "crashed")
}

func TestParse(t *testing.T) {
	groups, err := parse([]string{"--", "-race", "./a", "--", "-p=3", "-C=other", "./b", "./c"})
	require.NoError(t, err)
	assert.Equal(t, []group{{"", []string{"-race"}, []string{"./a"}}, {"other", []string{"-p=3"}, []string{"./b", "./c"}}}, groups)

	_, err = parse([]string{"-race"})
	require.EqualError(t, err, `argument "-race" before the first --`)
	_, err = parse([]string{"--", "-race"})
	require.EqualError(t, err, `no packages after the flags ["-race"]`)
}
