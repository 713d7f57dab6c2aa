package commands

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cache"
	"overrule.dev/overrule/internal/cli/ui"
)

const demoPath = "../../../examples/demo/"

// demoState returns the state that the page shows for files of the demo.
func demoState(t *testing.T, names ...string) (ui.State, []string) {
	t.Helper()
	var paths []string
	for _, name := range names {
		paths = append(paths, demoPath+name)
	}
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	a := &app{now: time.Now, reader: reader{terminal: terminal{IOStreams: streams}, connection: connection{config: genericclioptions.NewConfigFlags(true)}}}
	feed, err := a.newFileFeed(paths)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, feed.Close()) })
	state, err := feed.Load(t.Context())
	require.NoError(t, err)
	return state, paths
}

var world = []string{"00-cluster.yaml", "10-gateway-policies.yaml", "20-route-auth.yaml", "31-route-limits.yaml"}

// printed returns the list that a command prints as JSON.
func printed[T any](t *testing.T, paths []string, args ...string) (out T) {
	t.Helper()
	for _, p := range paths {
		args = append(args, "-f", p)
	}
	var stdout, stderr bytes.Buffer
	Run(t.Context(), genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: &stderr}, append(args, "-o", "json"))
	require.NoError(t, json.Unmarshal(stdout.Bytes(), &out), stderr.String())
	return out
}

func assertSameJSON(t *testing.T, want, got any) {
	t.Helper()
	w, err := json.Marshal(want)
	require.NoError(t, err)
	g, err := json.Marshal(got)
	require.NoError(t, err)
	assert.JSONEq(t, string(w), string(g))
}

func TestPage(t *testing.T) {
	state, _ := demoState(t, world...)
	answer, err := state.Object(t.Context(), ui.ObjectQuery{Kind: "gateway", Namespace: "infra", Name: "edge", Limit: 1})
	require.NoError(t, err)
	assert.Len(t, answer.Items, 1)
	assert.Equal(t, 4, answer.Total)
	assert.Equal(t, "edge", answer.Object.Ref.Name)
	assert.Contains(t, answer.Namespaces, "infra")

	served, err := state.Request(t.Context(), ui.RequestQuery{Request: "GET http://toystore.example.com/admin", Limit: 10})
	require.NoError(t, err)
	assert.True(t, served.Request.Served)
	assert.NotEmpty(t, served.Items)

	found, err := state.Violations(t.Context(), 10)
	require.NoError(t, err)
	assert.Len(t, found.Items, found.Total)

	picture, err := state.Picture(t.Context(), ui.ObjectQuery{Kind: "HTTPRoute", Namespace: "app", Name: "toystore"}, func(kind, _, name string) string { return kind + "!" + name })
	require.NoError(t, err)
	assert.Contains(t, picture, `href="AuthPolicy!gw-auth"`)
}

func TestPageOfAnObjectWithoutPolicies(t *testing.T) {
	state, _ := demoState(t, "00-cluster.yaml")
	for _, o := range []ui.ObjectQuery{{Kind: "HTTPRoute", Namespace: "app", Name: "toystore"}, {Kind: "Gateway", Namespace: "infra", Name: "edge"}, {Kind: "Namespace", Name: "app"}} {
		answer, err := state.Object(t.Context(), o)
		require.NoError(t, err)
		text, err := json.Marshal(answer)
		require.NoError(t, err)
		var lists struct{ Items, Outcomes *[]any }
		require.NoError(t, json.Unmarshal(text, &lists))
		assert.Equal(t, &[]any{}, lists.Items, o.Name)
		assert.Equal(t, &[]any{}, lists.Outcomes, o.Name)
	}
}

func TestPageEvaluatesChangesAsTheCommands(t *testing.T) {
	state, paths := demoState(t, world...)
	for _, name := range []string{"21-admin-auth-unset.yaml", "22-route-auth-api-key.yaml", "30-route-limits-too-high.yaml", "32-route-limits-lower.yaml"} {
		t.Run(name, func(t *testing.T) {
			manifest, err := os.ReadFile(demoPath + name)
			require.NoError(t, err)
			against := []string{"-f", demoPath + name}
			for _, p := range paths {
				against = append(against, "--against", p)
			}
			answer, err := state.Change(t.Context(), ui.Change{Manifest: string(manifest), Limit: 10})
			require.NoError(t, err)
			assertSameJSON(t, printed[api.VerdictList](t, nil, append([]string{"check"}, against...)...), answer.Verdicts)
			assertSameJSON(t, printed[api.ChangeList](t, nil, append([]string{"diff"}, against...)...), answer.Changes)
			assert.Len(t, answer.Changes.Items, answer.Total)
		})
	}
	before, err := state.Object(t.Context(), ui.ObjectQuery{Kind: "HTTPRoute", Namespace: "app", Name: "toystore", Limit: 10})
	require.NoError(t, err)
	assert.Len(t, before.Outcomes, 4, "a change that was tried has no effect")
}

func TestPageErrors(t *testing.T) {
	state, _ := demoState(t, world...)
	_, err := state.Object(t.Context(), ui.ObjectQuery{Kind: "HTTPRoute", Namespace: "app", Name: "none"})
	assert.ErrorIs(t, err, ui.ErrNotFound)
	assert.EqualError(t, err, "HTTPRoute app/none not found")
	_, err = state.Object(t.Context(), ui.ObjectQuery{Kind: "Nonsense", Name: "x"})
	assert.ErrorIs(t, err, ui.ErrInput)
	_, err = state.Request(t.Context(), ui.RequestQuery{Request: "GET nonsense"})
	assert.ErrorIs(t, err, ui.ErrInput)
	_, err = state.Change(t.Context(), ui.Change{Manifest: "kind: AuthPolicy\nspec: [\n"})
	assert.ErrorIs(t, err, ui.ErrInput)
	assert.ErrorContains(t, err, "change, line 1 (document 1)")
	_, err = state.Manifest(t.Context(), ui.ObjectQuery{Kind: "Namespace", Name: "none"})
	assert.ErrorIs(t, err, ui.ErrNotFound)
}

func TestPageBeginsWithTheManifest(t *testing.T) {
	state, _ := demoState(t, world...)
	text, err := state.Manifest(t.Context(), ui.ObjectQuery{Kind: "AuthPolicy.kuadrant.io", Namespace: "app", Name: "toystore-auth"})
	require.NoError(t, err)
	assert.Contains(t, text, "issuerUrl: https://login.toystore.example.com")
	answer, err := state.Change(t.Context(), ui.Change{Manifest: text, Limit: 10})
	require.NoError(t, err)
	require.Len(t, answer.Verdicts.Items, 1)
	assert.Equal(t, "UPDATE", answer.Verdicts.Items[0].Operation)
	assert.Zero(t, answer.Total)
}

func TestPageReadsStandardInputOnce(t *testing.T) {
	manifest, err := os.ReadFile(demoPath + "00-cluster.yaml")
	require.NoError(t, err)
	streams, in, _, _ := genericiooptions.NewTestIOStreams()
	in.Write(manifest)
	a := &app{now: time.Now, reader: reader{terminal: terminal{IOStreams: streams}, connection: connection{config: genericclioptions.NewConfigFlags(true)}}}
	extra := filepath.Join(t.TempDir(), "more-files.yaml")
	require.NoError(t, os.WriteFile(extra, []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: extra}\n"), 0o600))
	feed, err := a.newFileFeed([]string{"-", extra})
	require.NoError(t, err)
	defer func() { assert.NoError(t, feed.Close()) }()
	assert.Equal(t, "standard input, "+extra, feed.Name())
	for range 2 {
		state, err := feed.Load(t.Context())
		require.NoError(t, err)
		_, err = state.Object(t.Context(), ui.ObjectQuery{Kind: "HTTPRoute", Namespace: "app", Name: "toystore", Limit: 1})
		assert.NoError(t, err)
	}
}

func TestUICommandErrors(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		says string
	}{
		"an invalid port":            {[]string{"--port", "70000"}, "invalid --port: must be in 0-65535"},
		"a file that does not exist": {[]string{"-f", "none.yaml"}, "none.yaml"},
		"an argument":                {[]string{"x"}, "x"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			code := Run(ctx, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: &stderr}, append([]string{"ui"}, test.args...))
			assert.Equal(t, exitError, code)
			assert.Contains(t, stderr.String(), test.says)
		})
	}
}

func TestDisconnected(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	refused := errors.New("connection refused")
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "gateways"}, "", refused)
	for name, test := range map[string]struct {
		health cache.SourceHealth
		says   string
	}{
		"connected":                       {cache.SourceHealth{Synced: true}, ""},
		"closed a moment ago":             {cache.SourceHealth{Synced: true, DisconnectedSince: now.Add(-time.Second), Err: refused}, ""},
		"closed for long":                 {cache.SourceHealth{Synced: true, DisconnectedSince: now.Add(-time.Minute), Err: refused}, "not connected to the cluster: connection refused"},
		"closed by the API server":        {cache.SourceHealth{Synced: true, DisconnectedSince: now.Add(-time.Minute)}, ""},
		"a resource that was never read":  {cache.SourceHealth{DisconnectedSince: now.Add(-time.Minute), Err: refused}, ""},
		"a user who is not allowed watch": {cache.SourceHealth{Synced: true, DisconnectedSince: now.Add(-time.Minute), Err: forbidden}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := disconnected([]cache.SourceHealth{{Synced: true}, test.health}, now)
			if test.says == "" {
				assert.NoError(t, err)
				return
			}
			assert.EqualError(t, err, test.says)
		})
	}
}
