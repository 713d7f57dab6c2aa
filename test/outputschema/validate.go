// Package outputschema validates the JSON of the kubectl plugin against docs/schema.
package outputschema

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// Validate returns how a document differs from the schema of its kind; nil if it does not.
func Validate(tb testing.TB, kind, text string) error {
	tb.Helper()
	folder := schemas(tb)
	parts, ok := load(tb, folder, "parts")["$defs"].(map[string]any)
	require.True(tb, ok, "parts.json has no $defs")
	data, err := json.Marshal(resolve(load(tb, folder, kind), parts))
	require.NoError(tb, err)
	var s spec.Schema
	require.NoError(tb, json.Unmarshal(data, &s))
	var document any
	require.NoError(tb, json.Unmarshal([]byte(text), &document))
	return validate.AgainstSchema(&s, document, strfmt.Default)
}

// schemas returns the folder docs/schema of the repository that a test runs in.
func schemas(tb testing.TB) string {
	tb.Helper()
	at, err := os.Getwd()
	require.NoError(tb, err)
	for {
		folder := filepath.Join(at, "docs", "schema")
		if _, err := os.Stat(folder); err == nil {
			return folder
		}
		require.NotEqual(tb, at, filepath.Dir(at), "docs/schema is in no folder above the test")
		at = filepath.Dir(at)
	}
}

func load(tb testing.TB, folder, name string) map[string]any {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join(folder, name+".json"))
	require.NoError(tb, err)
	var out map[string]any
	require.NoError(tb, json.Unmarshal(data, &out))
	return out
}

// resolve replaces references by their definitions: the validator does not follow
// references.
func resolve(at any, parts map[string]any) any {
	switch at := at.(type) {
	case map[string]any:
		out := make(map[string]any)
		for k, v := range at {
			if k == "$schema" {
				continue
			}
			name, isRef := v.(string)
			if k != "$ref" || !isRef {
				out[k] = resolve(v, parts)
				continue
			}
			_, name, _ = strings.Cut(name, "#/$defs/")
			part, _ := resolve(parts[name], parts).(map[string]any)
			for k, v := range part {
				if _, given := at[k]; !given {
					out[k] = v
				}
			}
		}
		return out
	case []any:
		out := make([]any, len(at))
		for i := range at {
			out[i] = resolve(at[i], parts)
		}
		return out
	}
	return at
}
