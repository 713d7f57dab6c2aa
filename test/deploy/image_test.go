package deploy_test

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestImageIsScratchAndNonRoot(t *testing.T) {
	_, final, found := strings.Cut(read(t, "Dockerfile"), "\nFROM scratch\n")
	require.True(t, found, "the final stage is FROM scratch")
	assert.NotContains(t, final, "\nRUN ", "it has no program to run")

	pod := deployment(t, "base").Spec.Template.Spec
	user := fmt.Sprintf("\nUSER %d:%d\n", *pod.SecurityContext.RunAsUser, *pod.SecurityContext.RunAsGroup)
	assert.Contains(t, final, user)
	assert.Contains(t, final, `ENTRYPOINT ["/overrule"]`)
	for _, port := range pod.Containers[0].Ports {
		assert.Regexp(t, fmt.Sprintf(`\nEXPOSE [0-9 ]*\b%d\b`, port.ContainerPort), final)
	}
}

func TestImageIsBuiltWithTheModulesGo(t *testing.T) {
	version := regexp.MustCompile(`(?m)^go (\S+)$`).FindStringSubmatch(read(t, "go.mod"))
	require.NotNil(t, version)
	assert.Contains(t, read(t, "Dockerfile"), "\nARG GO_VERSION="+version[1]+"\n")
}

func TestBuildContextHoldsEveryPackageOfTheServer(t *testing.T) {
	sent := map[string]bool{}
	for line := range strings.SplitSeq(read(t, ".dockerignore"), "\n") {
		if dir, kept := strings.CutPrefix(line, "!"); kept {
			sent[dir] = true
		}
	}
	const ours = `{{with .Module}}{{if .Main}}{{$.ImportPath}}{{end}}{{end}}`
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", ours, "./cmd/overrule")
	list.Dir = root
	out, err := list.Output()
	require.NoError(t, err)

	packages := strings.Fields(string(out))
	require.NotEmpty(t, packages)
	for _, path := range packages {
		top, _, _ := strings.Cut(strings.TrimPrefix(path, "overrule.dev/overrule/"), "/")
		assert.Truef(t, sent[top], ".dockerignore leaves %s out, which the server imports", path)
	}
}
