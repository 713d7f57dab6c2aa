package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/controllers/canary"
	"overrule.dev/overrule/test/messages"
)

func TestPodNameDefaultsToTheEnvironment(t *testing.T) {
	t.Setenv("POD_NAME", "overrule-abc")
	assert.Equal(t, "overrule-abc", parseOptions(t).podName)
	assert.Equal(t, "other", parseOptions(t, "--pod-name=other").podName)
}

func TestCanaryThatCannotRunExitsWith2(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "kubeconfig")
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"an argument":         {[]string{"now"}, `unknown command "now" for "overrule canary"`},
		"an unknown flag":     {[]string{"--loud"}, "unknown flag: --loud"},
		"a wrong enforcement": {[]string{"--enforcement=maybe"}, `"maybe" for --enforcement`},
		"a wrong output":      {[]string{"-o", "xml"}, `"xml" for --output`},
		"no name":             {[]string{"--canary-namespace=App"}, "--canary-namespace"},
		"no time":             {[]string{"--timeout=0s"}, "--timeout"},
		"no kubeconfig":       {[]string{"--kubeconfig", missing}, `read kubeconfig "` + missing + `": `},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := NewCommand()
			cmd.SetArgs(append([]string{"canary"}, c.args...))
			err := cmd.ExecuteContext(t.Context())
			require.ErrorContains(t, err, c.want)
			messages.Golden(t, strings.ReplaceAll(err.Error(), filepath.Dir(missing), "DIR"))
			assert.Equal(t, 2, ExitCode(err))
		})
	}
}

func TestOtherErrorsExitWith1(t *testing.T) {
	assert.Equal(t, 1, ExitCode(errors.New("any")))
	assert.Equal(t, 2, ExitCode(fmt.Errorf("wrapped: %w", notRun(errors.New("any")))))
	cmd := NewCommand()
	cmd.SetArgs([]string{"--enforcement=maybe"})
	assert.Equal(t, 1, ExitCode(cmd.ExecuteContext(t.Context())))
}

func TestCanaryOutput(t *testing.T) {
	r := canary.Result{
		APIVersion: "overrule.dev/v1alpha1", Kind: "CanaryResult", Outcome: canary.Failed, Enforcement: "deny",
		Attempts: []canary.Attempt{{Sent: "one", Response: "<no>", Outcome: canary.Failed, Milliseconds: 7}},
	}
	var out bytes.Buffer
	require.NoError(t, write(&out, r, "json"))
	assert.JSONEq(t, `{"apiVersion":"overrule.dev/v1alpha1","kind":"CanaryResult","outcome":"failed","enforcement":"deny",
		"trials":[{"sent":"one","came":"<no>","outcome":"failed","milliseconds":7}]}`, out.String())
	assert.Contains(t, out.String(), "<no>", "it is readable")
	var back canary.Result
	require.NoError(t, json.Unmarshal(out.Bytes(), &back))
	assert.Equal(t, r, back)

	out.Reset()
	require.NoError(t, write(&out, r, "text"))
	assert.Equal(t, "failed   one (7 ms)\n         <no>\nthe canary failed\n", out.String())
}
