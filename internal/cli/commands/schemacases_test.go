package commands

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
)

const schemaCases = "testdata/schema/"

// schemaCase is a manifest and what the API server says about it.
type schemaCase struct {
	Name     string
	Mode     string
	Manifest json.RawMessage
	Want     []string
}

func (c schemaCase) mode() string {
	if c.Mode == "" {
		return "--validate=warn"
	}
	return "--validate=" + c.Mode
}

func loadSchemaCases(t *testing.T) []schemaCase {
	t.Helper()
	data, err := os.ReadFile(schemaCases + "cases.yaml")
	require.NoError(t, err)
	var out []schemaCase
	require.NoError(t, yaml.UnmarshalStrict(data, &out))
	for _, c := range out {
		slices.Sort(c.Want)
	}
	return out
}

// offlineMessages returns what the plugin says about a manifest, without suggestions,
// sorted.
func offlineMessages(t *testing.T, c schemaCase) []string {
	t.Helper()
	args := []string{"check", "-f", "-", "-o", "json", c.mode(), "--against", schemaCases + "widgets.yaml", "--against", schemaCases + "stored.yaml", "--against", "../../../examples/crds"}
	got := run(t, string(c.Manifest), args...)
	require.NotEqual(t, exitError, got.code, got.stderr)
	var out []string
	for _, v := range decode[api.VerdictList](t, got.stdout).Items {
		for _, r := range slices.Concat(v.Reasons, v.Warnings) {
			if r.Code == api.ReasonSchemaInvalid || r.Code == api.ReasonUnknownField {
				text, _, _ := strings.Cut(r.Message, ": did you mean ")
				text, _, _ = strings.Cut(text, "; served versions: ")
				out = append(out, text)
			}
		}
	}
	slices.Sort(out)
	return out
}

// The messages are those of the API server: see TestSchemaCasesOnAPIServer.
func TestSchemaCases(t *testing.T) {
	for _, c := range loadSchemaCases(t) {
		t.Run(c.Name, func(t *testing.T) { assert.Equal(t, c.Want, offlineMessages(t, c)) })
	}
}
