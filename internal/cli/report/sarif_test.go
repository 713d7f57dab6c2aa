package report

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// withoutRules returns a SARIF log without the texts of its rules, which are those of
// docs/reasons.md.
func withoutRules(t *testing.T, log []byte) string {
	t.Helper()
	var out map[string]any
	require.NoError(t, json.Unmarshal(log, &out))
	driver := out["runs"].([]any)[0].(map[string]any)["tool"].(map[string]any)["driver"].(map[string]any)
	for _, r := range driver["rules"].([]any) {
		rule := r.(map[string]any)
		for _, key := range []string{"help", "fullDescription", "shortDescription", "defaultConfiguration"} {
			delete(rule, key)
		}
	}
	text, err := json.MarshalIndent(out, "", " ")
	require.NoError(t, err)
	return string(text) + "\n"
}
