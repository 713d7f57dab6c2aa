package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/canary"
)

func TestTheCanarysFlagsAreChecked(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"none is needed":            {nil, ""},
		"never":                     {[]string{"--canary-interval=0"}, ""},
		"as often as it may be":     {[]string{"--canary-interval=5s"}, ""},
		"more often":                {[]string{"--canary-interval=4s"}, "--canary-interval=4s is less than 5s: 0 is never"},
		"back in time":              {[]string{"--canary-interval=-1m"}, "--canary-interval=-1m0s is less than 5s: 0 is never"},
		"at home":                   {[]string{"--canary-namespace=overrule-system"}, "--canary-namespace=overrule-system is the server's own, which is exempt from judging: name another one"},
		"a namespace of no name":    {[]string{"--canary-namespace=App"}, `--canary-namespace="App" is no name: a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`},
		"a namespace for nobody":    {[]string{"--canary-namespace=app", "--canary-interval=0"}, "--canary-namespace=app is for the canary, and --canary-interval=0 is none: give that a time, or leave --canary-namespace out"},
		"a namespace of its own":    {[]string{"--canary-namespace=app"}, ""},
		"armed":                     {[]string{"--arm"}, ""},
		"armed, and only warning":   {[]string{"--arm", "--enforcement=warn"}, ""},
		"armed without a canary":    {[]string{"--arm", "--canary-interval=0"}, "--arm needs the canary: give a --canary-interval over 0"},
		"armed by nobody":           {[]string{"--arm", "--manage-webhooks=false"}, "--arm needs --manage-webhooks: it is the server that changes the failurePolicy"},
		"armed for nothing":         {[]string{"--arm", "--failure-policy=Ignore"}, "--arm needs --failure-policy=Fail: with Ignore there is nothing to arm"},
		"armed blindly":             {[]string{"--arm", "--enforcement=audit"}, "--arm excludes --enforcement=audit: the canary cannot see there whether writes are judged"},
		"two things that are wrong": {[]string{"--arm", "--canary-interval=0", "--failure-policy=Ignore"}, "--arm needs the canary: give a --canary-interval over 0\n--arm needs --failure-policy=Fail: with Ignore there is nothing to arm"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("POD_NAMESPACE", "")
			o := parsed(t, c.args...)
			if c.want == "" {
				require.NoError(t, o.check())
				return
			}
			require.EqualError(t, o.check(), c.want)
		})
	}
}

func TestThePodIsThatOfTheEnvironment(t *testing.T) {
	t.Setenv("POD_NAME", "overrule-abc")
	assert.Equal(t, "overrule-abc", parsed(t).podName)
	assert.Equal(t, "other", parsed(t, "--pod-name=other").podName)
}

func TestACanaryThatCannotBeTriedEndsWithTwo(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "kubeconfig")
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"an argument":         {[]string{"now"}, `unknown command "now" for "overrule canary"`},
		"a flag of no kind":   {[]string{"--loud"}, "unknown flag: --loud"},
		"a wrong enforcement": {[]string{"--enforcement=maybe"}, `--enforcement="maybe" is none of [deny warn audit]`},
		"a wrong output":      {[]string{"-o", "xml"}, `--output="xml" is none of [text json]`},
		"no name":             {[]string{"--canary-namespace=App"}, `--canary-namespace="App" is no name: `},
		"no time":             {[]string{"--timeout=0s"}, "--timeout=0s leaves no time: give one over 0"},
		"no kubeconfig":       {[]string{"--kubeconfig", missing}, `read kubeconfig "` + missing + `": `},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := command()
			cmd.SetArgs(append([]string{"canary"}, c.args...))
			err := cmd.ExecuteContext(t.Context())
			require.ErrorContains(t, err, c.want)
			assert.Equal(t, 2, exitCode(err))
		})
	}
}

func TestOtherErrorsEndWithOne(t *testing.T) {
	assert.Equal(t, 1, exitCode(errors.New("any")))
	assert.Equal(t, 2, exitCode(fmt.Errorf("wrapped: %w", untriable(errors.New("any")))))
	cmd := command()
	cmd.SetArgs([]string{"--enforcement=maybe"})
	assert.Equal(t, 1, exitCode(cmd.ExecuteContext(t.Context())))
}

func TestAResultIsWrittenAsAsked(t *testing.T) {
	r := canary.Result{
		APIVersion: "overrule.dev/v1alpha1", Kind: "CanaryResult", Outcome: canary.Failed, Enforcement: "deny",
		Trials: []canary.Trial{{Sent: "one", Came: "<no>", Outcome: canary.Failed, Milliseconds: 7}},
	}
	var out bytes.Buffer
	require.NoError(t, write(&out, r, "json"))
	assert.JSONEq(t, `{"apiVersion":"overrule.dev/v1alpha1","kind":"CanaryResult","outcome":"failed","enforcement":"deny",
		"trials":[{"sent":"one","came":"<no>","outcome":"failed","milliseconds":7}]}`, out.String())
	assert.Contains(t, out.String(), "<no>", "people read it, too")
	var back canary.Result
	require.NoError(t, json.Unmarshal(out.Bytes(), &back))
	assert.Equal(t, r, back)

	out.Reset()
	require.NoError(t, write(&out, r, "text"))
	assert.Equal(t, "failed   one (7 ms)\n         <no>\nthe canary failed\n", out.String())
}
