//go:build integration

package helm_test

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The server parses all flags before it prints its help, and rejects unknown
// ones.
func TestServerAcceptsFlagsOfChart(t *testing.T) {
	for name, v := range map[string]values{
		"defaults": nil,
		"with all": static.with(values{"enforcement": "audit", "logLevel": "debug", "blastRadiusLimit": 5, "failurePolicy": "Ignore"}),
	} {
		t.Run(name, func(t *testing.T) {
			containers, found, err := unstructured.NestedSlice(rendered(t, v).get(t, "Deployment", "overrule"), "spec", "template", "spec", "containers")
			require.NoError(t, err)
			require.True(t, found)
			args, _, err := unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
			require.NoError(t, err)
			said, err := exec.CommandContext(t.Context(), "../../bin/overrule", append(args, "--help")...).CombinedOutput()
			require.NoError(t, err, `%s (to build it: "make build")`, said)
		})
	}
}
