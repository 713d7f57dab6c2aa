package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/policykind"
)

// Everything about a policy kind is in its profile: the code names none, not even
// in comments.
func TestEngineNamesNoPolicyKind(t *testing.T) {
	kinds := policykind.BuiltinKinds()
	require.NotEmpty(t, kinds)
	for _, folder := range []string{
		"merge", "internal/effective", "internal/snapshot", "internal/guard", "internal/gateway",
		"internal/schema", "internal/constraint", "internal/inflight", "internal/rights", "internal/controllers/audit",
	} {
		files, err := filepath.Glob(filepath.Join("..", folder, "*.go"))
		require.NoError(t, err)
		require.NotEmpty(t, files, folder)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			for _, k := range kinds {
				assert.NotContains(t, string(text), k.Kind, "%s names %s", file, k.Ref())
				assert.NotContains(t, strings.ReplaceAll(string(text), "gateway.networking.k8s.io", ""), k.Group, "%s names the group of %s", file, k.Ref())
			}
		}
	}
}
