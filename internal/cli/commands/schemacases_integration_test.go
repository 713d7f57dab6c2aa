//go:build integration

package commands

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
)

// TestSchemaCasesOnAPIServer compares the messages of the cases with those of kubectl
// apply. The stored objects are created before the definition of Widget has its rules.
func TestSchemaCasesOnAPIServer(t *testing.T) {
	e := env.Start(t, env.WithCRDs(looseWidgets(t)))
	got := e.Kubectl("apply", "--validate=false", "-f", schemaCases+"stored.yaml")
	require.Zero(t, got.Code, got.Stderr)
	require.NoError(t, e.InstallCRDs(schemaCases+"widgets.yaml"))
	probe := `{apiVersion: example.com/v1, kind: Widget, metadata: {name: probe, namespace: default}, spec: {size: 1, color: none}}`
	env.Soon(t, func() bool { return e.Apply(probe, "--dry-run=server").Code != 0 }, "the rules are not in force")
	for _, c := range loadSchemaCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			got := e.Apply(string(c.Manifest), "--dry-run=server", c.mode())
			assert.Equal(t, c.Want, kubectlMessages(got.Stderr), got.Stderr)
			assert.Equal(t, kubectlMessages(got.Stderr), offlineMessages(t, c))
		})
	}
}

// looseWidgets returns a file with the definition of Widget without its rules.
func looseWidgets(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(schemaCases + "widgets.yaml")
	require.NoError(t, err)
	before, rest, _ := strings.Cut(string(data), "            spec:\n              type: object\n")
	_, after, _ := strings.Cut(rest, "            status:")
	file := filepath.Join(t.TempDir(), "widgets.yaml")
	loose := before + "            spec: {type: object, x-kubernetes-preserve-unknown-fields: true}\n            status:" + after
	require.NoError(t, os.WriteFile(file, []byte(loose), 0o600))
	return file
}

var (
	invalidObject = regexp.MustCompile(`^The \w+ "[^"]*" is invalid: ?`)
	badRequest    = regexp.MustCompile(`^Error from server \(BadRequest\): .* cannot be handled as a \w+: `)
	cannotDecode  = regexp.MustCompile(`^error: unable to decode "STDIN": `)
	noMatch       = regexp.MustCompile(`^error: resource mapping not found for .*: (no matches for kind .*)$`)
)

// kubectlMessages returns the messages of the API server in the output of kubectl apply.
func kubectlMessages(stderr string) []string {
	var out []string
	for line := range strings.Lines(stderr) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "Warning: "):
			out = append(out, strings.TrimPrefix(line, "Warning: "))
		case strings.HasPrefix(line, "* "):
			out = append(out, strings.TrimPrefix(line, "* "))
		case invalidObject.MatchString(line):
			out = append(out, invalidObject.ReplaceAllString(line, ""))
		case badRequest.MatchString(line):
			text := strings.TrimPrefix(badRequest.ReplaceAllString(line, ""), "strict decoding error: ")
			out = append(out, strings.Split(text, ", ")...)
		case cannotDecode.MatchString(line):
			out = append(out, cannotDecode.ReplaceAllString(line, ""))
		case noMatch.MatchString(line):
			out = append(out, noMatch.ReplaceAllString(line, "$1"))
		}
	}
	out = slices.DeleteFunc(out, func(s string) bool {
		return s == "" || strings.Contains(s, "some validation rules were not checked") // which is no help to readers
	})
	slices.Sort(out)
	return out
}
