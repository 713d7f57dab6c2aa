package test

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// lean is the build tag without which gRPC brings pages of its own, and with
// their templates calls of methods by name: the linker then drops no method.
const lean = "grpcnotrace"

var buildOfServer = regexp.MustCompile(`(?m)^.*\bgo build .*\./cmd/overrule\b.*$`)

func TestTheServerIsLinkedWithoutTemplates(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags", lean, "./cmd/overrule")
	cmd.Dir = ".."
	out, err := cmd.Output()
	require.NoError(t, err)
	deps := strings.Fields(string(out))
	require.Contains(t, deps, "google.golang.org/grpc")
	assert.NotContains(t, deps, "golang.org/x/net/trace")
	assert.NotContains(t, deps, "html/template")

	assert.Contains(t, content(t, "Makefile"), "\nTAGS    := "+lean+"\n")
	for file, tags := range map[string]string{"Makefile": "-tags $(TAGS) ", "Dockerfile": "-tags=" + lean + " "} {
		builds := buildOfServer.FindAllString(content(t, file), -1)
		require.NotEmpty(t, builds, file)
		for _, b := range builds {
			assert.Contains(t, b, tags, file)
		}
	}
}
