package manifest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/messages"
)

// folder writes files and returns the folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o750))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	return dir
}

func object(kind, name string) string {
	return "apiVersion: v1\nkind: " + kind + "\nmetadata: {name: " + name + "}\n"
}

func names(s *Set) []string {
	out := []string{}
	for _, o := range s.Objects {
		out = append(out, o.Name)
	}
	return out
}

func TestReadOrder(t *testing.T) {
	dir := folder(t, map[string]string{
		"b.yaml":           object("A", "b1") + "---\n" + object("A", "b2"),
		"a.yml":            object("A", "a"),
		"sub/c.json":       `{"apiVersion": "v1", "kind": "A", "metadata": {"name": "c"}}`,
		"notes.txt":        "invalid manifest",
		".hidden/x.yaml":   "nor: this",
		".hidden.yaml":     "nor: this",
		"empty.yaml":       "# nothing\n---\n%YAML 1.1\n---\n",
		"sub/separate.yml": "--- # one\n" + object("A", "s1") + "...\n" + object("A", "s2") + "---\n",
	})
	t.Run("a folder by name", func(t *testing.T) {
		set, err := Read([]string{dir}, nil)
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "b1", "b2", "c", "s1", "s2"}, names(set))
	})
	t.Run("paths as they are given, each file once", func(t *testing.T) {
		set, err := Read([]string{filepath.Join(dir, "b.yaml"), "-", dir, filepath.Join(dir, "sub", "..", "a.yml")}, strings.NewReader(object("A", "stdin")))
		require.NoError(t, err)
		assert.Equal(t, []string{"b1", "b2", "stdin", "a", "c", "s1", "s2"}, names(set))
	})
	t.Run("a byte order mark and CRLF", func(t *testing.T) {
		set, err := Read([]string{"-"}, strings.NewReader("\uFEFF"+strings.ReplaceAll(object("A", "x")+"---\n"+object("A", "z"), "\n", "\r\n")))
		require.NoError(t, err)
		assert.Equal(t, []string{"x", "z"}, names(set))
	})
	t.Run("an alias within reason", func(t *testing.T) {
		set, err := Read([]string{"-"}, strings.NewReader("a: &a {name: x}\napiVersion: v1\nkind: A\nmetadata: *a\n"))
		require.NoError(t, err)
		assert.Equal(t, []string{"x"}, names(set))
	})
}

// JSON values need no separator, as for kubectl.
func TestReadJSONValues(t *testing.T) {
	value := func(name string) string {
		return "{\n\t\"apiVersion\": \"v1\", \"kind\": \"A\",\n\t\"metadata\": {\"name\": \"" + name + "\"}\n}"
	}
	for name, text := range map[string]string{
		"on lines of their own":          value("a") + "\n" + value("b") + "\n" + value("c") + "\n",
		"on one line":                    value("a") + value("b") + " " + value("c"),
		"with separators and comments":   "# one\n" + value("a") + "\n# two\n" + value("b") + "\n---\n" + value("c") + "\n# end\n",
		"a list, and YAML after a value": `{"apiVersion": "v1", "kind": "List", "items": [` + value("a") + "," + value("b") + "]}\n" + object("A", "c"),
		"YAML in flow style":             "{apiVersion: v1, kind: A, metadata: {name: a}}\n---\n" + value("b") + value("c"),
	} {
		t.Run(name, func(t *testing.T) {
			set, err := Read([]string{"-"}, strings.NewReader(text))
			require.NoError(t, err)
			require.Equal(t, []string{"a", "b", "c"}, names(set))
		})
	}
	set, err := Read([]string{"-"}, strings.NewReader(value("a")+"\n"+value("b")+"\n---\n"+value("c")))
	require.NoError(t, err)
	for i, at := range []Position{{File: "-", Document: 1, Line: 1}, {File: "-", Document: 2, Line: 5}, {File: "-", Document: 3, Line: 10}} {
		assert.Equal(t, at, set.Objects[i].At)
		assert.Equal(t, at.Line+2, set.Objects[i].Locate("metadata.name").Line)
	}
}

func TestReadLists(t *testing.T) {
	set, err := Read([]string{"-"}, strings.NewReader(`
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: A, metadata: {name: a}}
- apiVersion: example.com/v1
  kind: BList # an answer of the API server leaves the kinds of the items out
  items:
  - {metadata: {name: b, namespace: ns}}
`))
	require.NoError(t, err)
	require.Equal(t, []string{"a", "b"}, names(set))
	assert.Equal(t, "B.example.com", set.Objects[1].Kind.String())
	assert.Equal(t, Position{File: "-", Document: 1, Line: 2, Item: 1}, set.Objects[1].At)
}

func TestReadErrors(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		is   error
		want string
	}{
		"not YAML":                 {"a: b\n---\nkind: A\n\tx: y\n", ErrFormat, "standard input:3 (document 2): invalid manifest: yaml: line 4: found"},
		"a template":               {"a: b\nc: {{ .Values.c }}\n", ErrFormat, "; this looks like a template: render it first, for example with helm template"},
		"tabs":                     {"# a\n---\na:\n  - b\n\t- c\n", ErrFormat, "; line 5 is indented with a tab: use spaces"},
		"a key twice":              {"kind: A\nkind: B\n", ErrFormat, `line 2: key "kind" already set`},
		"invalid UTF-8":            {"a: 1\nb: \xff\n", ErrFormat, "standard input:2: invalid manifest: invalid UTF-8; save the file as UTF-8"},
		"UTF-16":                   {"\xff\xfea\x00:\x00", ErrFormat, "invalid UTF-8"},
		"a truncated second value": {"{\"a\": 1}\n{\"b\": {\n", ErrFormat, "node content; the JSON value is not closed: the document is truncated"},
		"objects in a row":         {"apiVersion: v1\nkind: A\n\napiVersion: v1\nkind: B\n", ErrFormat, "line 4 begins another object: separate documents with ---"},
		"a JSON array":             {"[{}, {}]", ErrFormat, "standard input:1 (document 1): invalid manifest: must be an object with apiVersion, kind and metadata, not array; write each object as a document of its own"},
		"YAML maps in a row":       {"{a: b}\n{c: d}\n", ErrFormat, "standard input:1 (document 1): invalid manifest: yaml: line 1: did not find expected <document start>; separate documents with ---"},
		"a value after YAML":       {"a: b\n{\"c\": 1}\n", ErrFormat, "standard input:1 (document 1): invalid manifest: yaml: line"},
		"text after a value":       {"{\"a\": 1}\nb\n", ErrFormat, "standard input:2 (document 2): invalid manifest: must be an object with apiVersion, kind and metadata, not string"},
		"a list":                   {"- a\n", ErrFormat, "not array"},
		"a text":                   {"hello\n", ErrFormat, "not string"},
		"a number":                 {"12\n", ErrFormat, "not number"},
		"nothing":                  {"null\n", ErrFormat, "not null"},
		"a truth value":            {"yes\n", ErrFormat, "not boolean (quote the strings yes"},
		"an invalid item":          {"apiVersion: v1\nkind: List\nitems: [{}, 1]\n", ErrFormat, "standard input:1 (document 1, item 2): invalid manifest: "},
		"items that are no list":   {"apiVersion: v1\nkind: List\nitems: {}\n", nil, "standard input:1 (document 1): items "},
		"no kind":                  {"apiVersion: v1\n", nil, "kind is required"},
		"no apiVersion":            {"kind: A\n", nil, "apiVersion is required for kind A"},
		"a kind that is a map":     {"kind: {}\napiVersion: v1\n", nil, "kind "},
		"a name that is a number":  {"kind: A\napiVersion: v1\nmetadata: {name: 1}\n", nil, "metadata.name "},
		"metadata that is a list":  {"kind: A\napiVersion: v1\nmetadata: []\n", nil, "metadata "},
		"text behind a separator":  {object("A", "a") + "--- x: y\n", ErrFormat, `standard input:4: invalid manifest: unexpected "x: y" after a document separator; move it to the next line`},
		"nothing at all":           {"# nothing\n", ErrEmpty, "standard input: no manifests found"},
		"deep nesting":             {"a: " + strings.Repeat("[", 1_000_000), ErrFormat, "exceeded max depth"},
		"deep objects":             {"a: " + strings.Repeat("{a: ", 20_000), ErrFormat, "exceeded max depth"},
		"an anchor in itself":      {"a: &a [*a]\n", ErrFormat, `line 1: the anchor "a" contains itself`},
		"an unknown anchor":        {"a: &b 1\nc: *a\n", ErrFormat, "unknown anchor"},
		"a bomb of lists":          {bomb(), ErrTooLarge, "the document exceeds 64 MiB with its aliases expanded"},
		"a bomb of one long text":  {"a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a,", 10_000) + "]\n", ErrTooLarge, "64 MiB"},
		"a file that is too large": {strings.Repeat("# 34567\n", MaxSize/8) + "x", ErrTooLarge, "exceeds 64 MiB; split the file"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read([]string{"-"}, strings.NewReader(c.text))
			require.ErrorContains(t, err, c.want)
			messages.Golden(t, err.Error())
			if c.is != nil {
				assert.ErrorIs(t, err, c.is)
			}
			assert.Less(t, len(err.Error()), 1000)
		})
	}
}

// bomb returns nine lines that expand to 10^9 strings.
func bomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [" + strings.Repeat("x,", 10) + "]\n")
	for i := range 9 {
		prev, next := string(rune('0'+i)), string(rune('1'+i))
		b.WriteString("a" + next + ": &a" + next + " [" + strings.Repeat("*a"+prev+",", 10) + "]\n")
	}
	return b.String()
}

func TestReadJoinsErrors(t *testing.T) {
	dir := folder(t, map[string]string{"a.yaml": "kind: A\n---\n- b\n---\n--- c\n", "b.yaml": "\xff", "empty/x.txt": ""})
	missing := filepath.Join(dir, "missing.yaml")
	empty := filepath.Join(dir, "empty")
	_, err := Read([]string{dir, missing, empty}, nil)
	require.Error(t, err)
	assert.Len(t, strings.Split(err.Error(), "\n"), 6, "%v", err)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorIs(t, err, ErrEmpty)
	for _, part := range []string{
		filepath.Join(dir, "a.yaml") + ":1 (document 1): apiVersion is required",
		filepath.Join(dir, "a.yaml") + ":3 (document 2): invalid manifest",
		filepath.Join(dir, "a.yaml") + ":5: invalid manifest: unexpected \"c\" after a document separator",
		filepath.Join(dir, "b.yaml") + ":1: invalid manifest",
		missing + ": file does not exist; check the path",
		empty + ": no manifests found; specify a file, or a directory with .yaml, .yml or .json files",
	} {
		assert.ErrorContains(t, err, part)
	}
}

func TestReadIOErrors(t *testing.T) {
	broken := errors.New("broken pipe")
	_, err := Read([]string{"-"}, iotest.ErrReader(broken))
	require.ErrorIs(t, err, broken)
	assert.ErrorContains(t, err, "read standard input")
	_, err = Read([]string{"a\x00b"}, nil)
	assert.ErrorContains(t, err, "stat a")
}
