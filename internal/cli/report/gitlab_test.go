package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/tables"
)

func qualities(t *testing.T, r *Report) []codeQuality {
	t.Helper()
	data, err := gitlabText(r)
	require.NoError(t, err)
	var out []codeQuality
	require.NoError(t, json.Unmarshal(data, &out))
	require.NotNil(t, out, "an empty report is a list")
	return out
}

func TestGitLab(t *testing.T) {
	at := func(file string, line int) string { return fmt.Sprint(file, line) }
	for name, c := range tables.Read[map[string]struct {
		Finding     Finding
		Severity    string
		Description string
		Location    string
	}](t, "testdata/tables/gitlab.yaml") {
		t.Run(name, func(t *testing.T) {
			c.Finding.Severity = Severity(slices.Index([]string{"blocker", "minor", "info"}, c.Severity))
			got := qualities(t, &Report{Findings: []Finding{c.Finding}})
			require.Len(t, got, 1)
			assert.Len(t, got[0].Fingerprint, 34)
			assert.Equal(t, []string{c.Description, "NoPath", c.Severity, c.Location},
				[]string{got[0].Description, got[0].CheckName, got[0].Severity, at(got[0].Location.Path, got[0].Location.Lines.Begin)})
		})
	}
}

func TestGitLabFingerprintsAreUnique(t *testing.T) {
	r := hostile()
	r.Findings = append(r.Findings, r.Findings...)
	seen := map[string]bool{}
	for _, q := range qualities(t, r) {
		assert.False(t, seen[q.Fingerprint], q.Description)
		seen[q.Fingerprint] = true
	}
	assert.Len(t, seen, 2*len(hostileTexts))
}

func TestGitLabWithoutFindings(t *testing.T) {
	assert.Empty(t, qualities(t, &Report{Command: "check"}))
}
