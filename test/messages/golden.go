// Package messages keeps the full texts of messages out of the tests: each
// package has them in testdata/messages.golden, and its tests assert fields,
// codes and objects. "go test -update" rewrites the file.
package messages

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Update reports whether golden files are to be rewritten.
func Update() bool { return *update }

// Golden compares messages with the lines of testdata/messages.golden for the
// test, "TestName/case: message", one line for each message. A test may call it
// repeatedly.
func Golden(t testing.TB, all ...string) {
	t.Helper()
	current.once.Do(current.load)
	require.NoError(t, current.err)
	current.mu.Lock()
	defer current.mu.Unlock()
	name := t.Name()
	if _, known := current.got[name]; !known {
		current.got[name] = []string{}
		t.Cleanup(func() { current.finish(t, name) })
	}
	for _, text := range all {
		current.got[name] = append(current.got[name], onOneLine(text))
	}
}

// onOneLine escapes what a line of the file cannot contain.
func onOneLine(text string) string {
	if !utf8.ValidString(text) {
		quoted := strconv.Quote(text)
		return quoted[1 : len(quoted)-1]
	}
	return strings.ReplaceAll(text, "\n", `\n`)
}

// current is the golden file of the package under test.
var current = newGoldenFile()

type goldenFile struct {
	once sync.Once
	path string
	err  error
	mu   sync.Mutex
	want map[string][]string // by name of the test
	got  map[string][]string // of tests that run
}

// newGoldenFile returns the file below the directory in which "go test" starts the tests;
// they may change to another one.
func newGoldenFile() *goldenFile {
	f := &goldenFile{got: map[string][]string{}}
	f.path, f.err = filepath.Abs("testdata/messages.golden")
	return f
}

// load reads the file. An update of all tests starts with an empty one, which
// drops the lines of tests that no longer exist.
func (f *goldenFile) load() {
	f.want = map[string][]string{}
	if run := flag.Lookup("test.run"); *update && run.Value.String() == "" {
		return
	}
	data, err := os.ReadFile(f.path)
	if err != nil && !os.IsNotExist(err) {
		f.err = err
		return
	}
	for line := range strings.Lines(string(data)) {
		name, text, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		if !ok {
			f.err = fmt.Errorf("%s: line %q has no name of a test", f.path, line)
			return
		}
		f.want[name] = append(f.want[name], text)
	}
}

// finish compares the messages of a test, or writes them.
func (f *goldenFile) finish(t testing.TB, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	got := f.got[name]
	delete(f.got, name) // the test may run again
	if !*update {
		assert.Equal(t, strings.Join(f.want[name], "\n"), strings.Join(got, "\n"), "messages of %s in %s; -update rewrites them", name, f.path)
		return
	}
	f.want[name] = got
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(f.want)) {
		for _, text := range f.want[name] {
			fmt.Fprintf(&out, "%s: %s\n", name, text)
		}
	}
	assert.NoError(t, os.MkdirAll(filepath.Dir(f.path), 0o750))
	assert.NoError(t, os.WriteFile(f.path, []byte(out.String()), 0o600))
}
