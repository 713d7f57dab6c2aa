package test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// serverTags is the build tag that leaves out gRPC's debug pages. Their templates
// call methods by name, so the linker could not remove any unused method.
const serverTags = "grpcnotrace"

var buildOfServer = regexp.MustCompile(`(?m)^.*\bgo build .*\./cmd/overrule\b.*$`)

func TestServerIsLinkedWithoutTemplates(t *testing.T) {
	deps := dependencies(t, module+"/cmd/overrule")
	require.Contains(t, deps, "google.golang.org/grpc")
	assert.NotContains(t, deps, "golang.org/x/net/trace")
	assert.NotContains(t, deps, "html/template")

	assert.Contains(t, content(t, "Makefile"), "\nTAGS    := "+serverTags+"\n")
	for file, tags := range map[string]string{"Makefile": "-tags $(TAGS) ", "Dockerfile": "-tags=" + serverTags + " "} {
		builds := buildOfServer.FindAllString(content(t, file), -1)
		require.NotEmpty(t, builds, file)
		for _, b := range builds {
			assert.Contains(t, b, tags, file)
		}
	}
}
