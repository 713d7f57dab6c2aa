//go:build e2e

package rfc

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/inprocess"
	"overrule.dev/overrule/test/server"
	"overrule.dev/overrule/test/tables"
)

// example is an example of testdata/examples.yaml.
type example struct {
	Files, Messages []string
	Denied, Warned  []api.ReasonCode
}

func examples(t *testing.T) map[string]example {
	t.Helper()
	return tables.Read[map[string]example](t, "testdata/examples.yaml")
}

func folder(t *testing.T) string {
	t.Helper()
	root, err := env.Repository(t.Context())
	require.NoError(t, err)
	return filepath.Join(root, "examples", "ratelimitpolicy")
}

func TestEveryExampleIsApplied(t *testing.T) {
	found, err := filepath.Glob(filepath.Join(folder(t), "*.yaml"))
	require.NoError(t, err)
	var last []string
	for _, c := range examples(t) {
		last = append(last, c.Files[len(c.Files)-1])
	}
	for _, file := range found {
		assert.Contains(t, last, filepath.Base(file))
	}
}

// The examples are independent: each starts with network.yaml only.
func TestExamples(t *testing.T) {
	env.Long(t)
	e := inprocess.Start(t)
	server.Start(t, e.Env, server.Options{})
	for name, c := range examples(t) {
		t.Run(name, func(t *testing.T) {
			w := world{e, folder(t)}
			w.empty(t)
			for _, file := range append([]string{"network.yaml"}, c.Files[:len(c.Files)-1]...) {
				got := w.apply(t, file)
				require.Zero(t, got.Code, got.Stderr)
			}
			last := c.Files[len(c.Files)-1]
			w.checks(t, last, c)
			got := w.apply(t, last)
			assert.Equal(t, c.Denied != nil, got.Code != 0, got.Stderr)
			assertMessages(t, c.Messages, got.Stderr)
			if policy, _, found := strings.Cut(got.Stdout, " created"); found && strings.HasPrefix(policy, "ratelimitpolicy") {
				before := w.version(t, policy)
				require.Zero(t, w.apply(t, last).Code)
				assert.Equal(t, before, w.version(t, policy), "what is stored is what was written")
			}
		})
	}
}

// world is a cluster, and the folder of the examples.
type world struct {
	*inprocess.Cluster

	folder string
}

func (w world) apply(t *testing.T, file string) env.Result {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(w.folder, file))
	require.NoError(t, err)
	return w.Apply(string(data))
}

// version changes with each write that changes something. kubectl sends lists
// again in which the schema has added defaults: that is not a change.
func (w world) version(t *testing.T, policy string) string {
	t.Helper()
	kind, name, _ := strings.Cut(policy, "/")
	got := w.Kubectl("get", kind, "-A", "--field-selector=metadata.name="+name, "-o", "jsonpath={.items[*].metadata.resourceVersion}")
	require.Zero(t, got.Code, got.Stderr)
	require.NotEmpty(t, got.Stdout)
	return got.Stdout
}

// empty deletes the policies and routes of the previous example.
func (w world) empty(t *testing.T) {
	t.Helper()
	for _, kind := range []string{"ratelimitpolicies.kuadrant.io", "httproutes.gateway.networking.k8s.io"} {
		for _, namespace := range []string{"toystore", "istio-system"} {
			got := w.Kubectl("delete", kind, "--all", "-n", namespace)
			require.Zero(t, got.Code, got.Stderr)
		}
	}
}

// checks runs "kubectl overrule check" first, which reads the cluster itself.
func (w world) checks(t *testing.T, file string, c example) {
	t.Helper()
	got := w.Overrule("check", "-f", filepath.Join(w.folder, file), "-o", "json")
	var verdicts api.VerdictList
	require.NoError(t, json.Unmarshal([]byte(got.Stdout), &verdicts), got.Stderr)
	var denied, warned []api.ReasonCode
	for _, v := range verdicts.Items {
		assert.Equal(t, len(v.Reasons) == 0, v.Allowed)
		denied, warned = append(denied, codes(v.Reasons)...), append(warned, codes(v.Warnings)...)
	}
	assert.Equal(t, c.Denied, denied)
	assert.ElementsMatch(t, c.Warned, warned)
}

func codes(reasons []api.Reason) []api.ReasonCode {
	var out []api.ReasonCode
	for _, r := range reasons {
		out = append(out, r.Code)
	}
	return out
}

// assertMessages compares the lines on stderr.
func assertMessages(t *testing.T, want []string, stderr string) {
	t.Helper()
	lines := strings.FieldsFunc(stderr, func(r rune) bool { return r == '\n' })
	assert.Len(t, lines, len(want), stderr)
	for _, part := range want {
		assert.True(t, slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, part) }), "%q is in\n%s", part, stderr)
	}
}
