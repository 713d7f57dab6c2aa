//go:build e2e

package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
)

// guardrailsPage returns docs/guardrails.md.
func guardrailsPage(t *testing.T) string {
	t.Helper()
	root, err := env.Repository(t.Context())
	require.NoError(t, err)
	data, err := os.ReadFile(filepath.Join(root, "docs", "guardrails.md"))
	require.NoError(t, err)
	return string(data)
}

var documentedRow = regexp.MustCompile("(?m)^\\|.*\\| `([a-z0-9-]+)` \\|$")

// requireDocumentedRows requires that the tables of the page list exactly these
// rows.
func requireDocumentedRows(t *testing.T) {
	t.Helper()
	var named []string
	for _, m := range documentedRow.FindAllStringSubmatch(guardrailsPage(t), -1) {
		named = append(named, m[1])
	}
	slices.Sort(named)
	assert.Equal(t, slices.Sorted(maps.Keys(allRows(t))), named, "the rows, and the tables of docs/guardrails.md")
}

var fencedYAML = regexp.MustCompile("(?ms)^```yaml\n(apiVersion: .*?)^```$")

// applyPageManifests requires that the API server accepts the manifests of the
// page.
func (c *cluster) applyPageManifests(t *testing.T) {
	t.Helper()
	all := fencedYAML.FindAllStringSubmatch(guardrailsPage(t), -1)
	require.Len(t, all, 4, "a role and three constraints")
	succeed(t, c.Apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: infra}"))
	for _, m := range all {
		succeed(t, c.Apply(m[1], "--dry-run=server"))
	}
}
