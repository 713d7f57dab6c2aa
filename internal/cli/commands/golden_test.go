package commands

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/test/messages"
)

// golden compares the output of a command with a golden file.
func golden(t *testing.T, name string, got result) {
	t.Helper()
	require.Equal(t, exitOK, got.code, got.stderr)
	file := filepath.Join("testdata/golden", name)
	if messages.Update() {
		require.NoError(t, os.WriteFile(file, []byte(got.stdout), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), got.stdout, file)
}

// goldenStderr compares the standard error of a command with the golden file of
// messages; temporary directories are TMP.
func goldenStderr(t *testing.T, got result) {
	t.Helper()
	if got.stderr != "" {
		messages.Golden(t, temporary.ReplaceAllString(got.stderr, "TMP"))
	}
}

var temporary = regexp.MustCompile(regexp.QuoteMeta(filepath.Clean(os.TempDir())) + `/[^:\s"]*`)

func gep713(example string) []string {
	return []string{"-f", "testdata/gep713/hierarchy.yaml", "-f", "testdata/gep713/example-" + example + ".yaml"}
}

func TestProfilesMatchSchema(t *testing.T) {
	requireSchema(t, api.KindProfileList, run(t, "", "profiles", "-f", "testdata/profiles.yaml", "-o", "json", "--all"))
}

// The JSON, the table and the tree of each list.
func TestGoldenLists(t *testing.T) {
	shapes := func(args ...string) []string { return append(args, "-f", "testdata/shapes.yaml", "-A") }
	request := func(args ...string) []string { return append(args, requestFiles...) }
	for name, c := range map[string]struct {
		kind string
		args []string
	}{
		"reach":           {api.KindReachList, append(gep713("3"), "reach", "colorpolicy/p3")},
		"reach-rule":      {api.KindReachList, append(gep713("3"), "reach", "colorpolicy/p1", "colors.dark")},
		"reach-nowhere":   {api.KindReachList, append(gep713("2"), "reach", "colorpolicy/p4")},
		"affecting":       {api.KindReachList, append(gep713("3"), "reach", "--affecting", "svc/b2")},
		"affecting-mesh":  {api.KindReachList, shapes("reach", "--affecting", "svc/toys")},
		"profiles":        {api.KindProfileList, []string{"profiles", "-f", "testdata/profiles.yaml"}},
		"shapes":          {api.KindEffectivePolicyList, shapes("effective")},
		"shapes-without":  {api.KindEffectivePolicyList, shapes("effective", "--without")},
		"explain-service": {api.KindExplanationList, shapes("explain", "svc/toys")},
		"outcomes":        {api.KindOutcomeList, []string{"outcome", "-f", "testdata/shapes.yaml", "--kind", "MeshPolicy", "--kind", "SlowPolicy"}},
		"losses":          {api.KindEffectivePolicyList, []string{"effective", "-f", "testdata/losses.yaml", "-A"}},
		"losses-explain":  {api.KindExplanationList, []string{"explain", "-f", "testdata/losses.yaml", "-n", "app", "httproute/toys"}},
		"request":         {api.KindEffectivePolicyList, request("effective", "--request", "https://shop.example.com/cart?x=1")},
		"request-explain": {api.KindExplanationList, request("explain", "--request", "DELETE https://shop.example.com/cart/x/../y", "--gateway", "infra/edge")},
		"request-mesh":    {api.KindExplanationList, request("explain", "--request", "http://cart.shop/items", "--client-namespace", "web")},
		"losses-outcome":  {api.KindOutcomeList, []string{"outcome", "-f", "testdata/losses.yaml", "-A"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, "", append(c.args, "-o", "json")...)
			golden(t, name+".json", got)
			requireSchema(t, c.kind, got)
			golden(t, name+".table.txt", run(t, "", append(c.args, "-o", "table")...))
			golden(t, name+".tree.txt", run(t, "", append(c.args, "-o", "tree")...))
		})
	}
}
