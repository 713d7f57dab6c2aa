package commands

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"overrule.dev/overrule/internal/cache"
	"overrule.dev/overrule/test/cases"
	"overrule.dev/overrule/test/tables"
)

// result is the exit code and the output of a command.
type result struct {
	code           int
	stdout, stderr string
}

// run runs the command at the time of the cases.
func run(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	return (&app{reader: reader{connection: connection{list: cache.List}}}).exec(t, stdin, args...)
}

// exec runs the command, and leaves out the warning about kinds without a definition.
func (a *app) exec(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	got := a.execute(t, stdin, args...)
	got.stderr = withoutSchema.ReplaceAllString(got.stderr, "")
	return got
}

func (a *app) execute(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	t.Setenv("HOME", t.TempDir()) // no kubeconfig
	t.Setenv("KUBECONFIG", "")
	var stdout, stderr bytes.Buffer
	a.IOStreams = genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &stdout, ErrOut: &stderr}
	a.now = func() time.Time { return cases.Now.Add(300 * time.Millisecond) }
	code := a.run(t.Context(), args)
	return result{code, stdout.String(), stderr.String()}
}

// errorCase is a command that ends with an error, of which want is a part.
type errorCase struct {
	args []string
	code int
	want string
}

// errorTable reads cases of a table, whose arguments spaces separate.
func errorTable(t *testing.T, name string) map[string]errorCase {
	t.Helper()
	out := make(map[string]errorCase)
	for sentence, c := range tables.Read[map[string]struct {
		Args string
		Code int
		Want string
	}](t, "testdata/tables/"+name+".yaml") {
		out[sentence] = errorCase{strings.Fields(c.Args), c.Code, c.Want}
	}
	return out
}

// assertErrors runs commands, which begin with base.
func assertErrors(t *testing.T, base []string, all map[string]errorCase) {
	t.Helper()
	for name, c := range all {
		t.Run(name, func(t *testing.T) {
			got := run(t, "", append(slices.Clone(base), c.args...)...)
			assert.Equal(t, c.code, got.code)
			assert.Contains(t, got.stderr, c.want)
			goldenStderr(t, got)
			assert.Empty(t, got.stdout)
		})
	}
}

// Parts of what commands print.
func TestCommands(t *testing.T) {
	for name, c := range tables.Read[struct {
		Objects []json.RawMessage // that cases have in common
		Cases   map[string]struct {
			Files                map[string][]json.RawMessage
			Args                 string
			Code                 int
			Stdout, Stderr, None []string
		}
	}](t, "testdata/tables/commands.yaml").Cases {
		t.Run(name, func(t *testing.T) {
			files := make(map[string]string)
			for name, objects := range c.Files {
				var text strings.Builder
				for _, o := range objects {
					text.WriteString("---\n" + string(o) + "\n")
				}
				files[name] = write(t, name+".yaml", text.String())
			}
			got := run(t, "", strings.Fields(os.Expand(c.Args, func(name string) string { return files[name] }))...)
			assert.Equal(t, c.Code, got.code, got.stderr)
			for _, part := range c.Stdout {
				assert.Contains(t, got.stdout, part)
			}
			for _, part := range c.Stderr {
				assert.Contains(t, got.stderr, part)
			}
			for _, part := range c.None {
				assert.NotContains(t, got.stdout+got.stderr, part)
			}
		})
	}
}

// withoutSchema is the warning about manifests without the definitions of their kinds, as
// those of most tests are.
var withoutSchema = regexp.MustCompile(`(?m)^warning: fields of .* are not validated, .* to the manifests\n`)

// write writes a file of manifests and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var out T
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&out), text)
	return out
}
