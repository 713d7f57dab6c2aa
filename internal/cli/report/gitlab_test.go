package report

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func qualities(t *testing.T, r *Report) []codeQuality {
	t.Helper()
	data, err := r.GitLab()
	require.NoError(t, err)
	var out []codeQuality
	require.NoError(t, json.Unmarshal(data, &out))
	require.NotNil(t, out, "an empty report is a list")
	return out
}

func TestGitLab(t *testing.T) {
	at := func(file string, line int) string { return fmt.Sprint(file, line) }
	for name, c := range map[string]struct {
		finding     Finding
		severity    string
		description string
		location    string
	}{
		"an error is a blocker": {
			Finding{Severity: Error, Code: "NoPath", Object: gwAuth, Message: "m", At: Location{File: "a.yaml", Line: 3}}, "blocker", "NoPath: AuthPolicy infra/gw-auth: m", at("a.yaml", 3),
		},
		"a warning is minor": {
			Finding{Severity: Warning, Code: "NoPath", Object: gwAuth, Message: "m", At: Location{File: "./a.yaml"}}, "minor", "NoPath: AuthPolicy infra/gw-auth: m", at("a.yaml", 1),
		},
		"a note is information": {
			Finding{Severity: Note, Code: "NoPath", Message: "m", At: Location{File: "a b.yaml", Line: 3}}, "info", "NoPath: m", at("a b.yaml", 3),
		},
		"an object of the cluster": {
			Finding{Code: "NoPath", Object: gwAuth, Message: "m"}, "blocker", "NoPath: AuthPolicy infra/gw-auth: m", at("cluster/AuthPolicy/infra/gw-auth", 1),
		},
		"standard input": {
			Finding{Code: "NoPath", Object: gwAuth, Message: "m", At: Location{File: "-", Line: 4}}, "blocker", "NoPath: AuthPolicy infra/gw-auth: standard input:4: m", at("cluster/AuthPolicy/infra/gw-auth", 1),
		},
		"a file outside of the repository": {
			Finding{Code: "NoPath", Object: gwAuth, Message: "m", At: Location{File: "../a.yaml", Line: 4}}, "blocker", "NoPath: AuthPolicy infra/gw-auth: ../a.yaml:4: m", at("cluster/AuthPolicy/infra/gw-auth", 1),
		},
		"a name is one segment of the path": {
			Finding{Code: "NoPath", Object: ref("", "A", "..", "b/../c\n"), Message: "m"}, "blocker", "NoPath: A ../b/../c: m", at("cluster/A/b_.._c ", 1),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := qualities(t, &Report{Findings: []Finding{c.finding}})
			require.Len(t, got, 1)
			assert.Len(t, got[0].Fingerprint, 34)
			assert.Equal(t, []string{c.description, "NoPath", c.severity, c.location},
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
