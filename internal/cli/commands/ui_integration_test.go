//go:build integration

package commands

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"overrule.dev/overrule/internal/cache"
	"overrule.dev/overrule/internal/cli/ui"
	"overrule.dev/overrule/test/env"
)

// loadUntil loads states, as the page does, until one meets a condition.
func loadUntil(t *testing.T, feed *clusterFeed, what string, is func(ui.State) bool) ui.State {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), env.Patience)
	defer cancel()
	for {
		require.NoError(t, feed.Wait(ctx), what)
		if state, err := feed.Load(ctx); err == nil && is(state) {
			return state
		}
	}
}

func hasPolicy(name string) func(ui.State) bool {
	return func(s ui.State) bool {
		for _, o := range s.Objects() {
			if o.Policy && o.Ref.Name == name {
				return true
			}
		}
		return false
	}
}

// The page follows a cluster.
func TestPageFollowsCluster(t *testing.T) {
	e := env.Start(t)
	for _, name := range []string{"cluster", "gateway-policies"} {
		got := e.Kubectl("apply", "--server-side", "-f", demo+name+".yaml")
		require.Zero(t, got.Code, got.Stderr)
	}
	reader := e.MustAddUser(t, "reader", nil, readers...)
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	feedOf := func(kubeconfig string) *clusterFeed {
		a := &app{now: time.Now}
		a.IOStreams, a.list, a.config = streams, cache.List, genericclioptions.NewConfigFlags(true)
		a.config.KubeConfig = &kubeconfig
		feed, err := a.newClusterFeed(t.Context())
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, feed.Close()) })
		return feed
	}
	admin, listing := feedOf(e.Kubeconfig), feedOf(reader.Kubeconfig)
	for _, feed := range []*clusterFeed{admin, listing} {
		state, err := feed.Load(t.Context())
		require.NoError(t, err)
		assert.True(t, hasPolicy("gw-auth")(state))
		assert.False(t, hasPolicy("toystore-auth")(state))
	}
	got := e.Kubectl("apply", "--server-side", "-f", demo+"route-auth.yaml")
	require.Zero(t, got.Code, got.Stderr)
	state := loadUntil(t, admin, "the watch reports the new policy", hasPolicy("toystore-auth"))
	text, err := state.Manifest(t.Context(), ui.ObjectQuery{Kind: "AuthPolicy", Namespace: "app", Name: "toystore-auth"})
	require.NoError(t, err)
	assert.NotContains(t, text, "managedFields")
	answer, err := state.Change(t.Context(), ui.Change{Manifest: text, Delete: true, Limit: 10})
	require.NoError(t, err)
	require.Len(t, answer.Verdicts.Items, 1)
	assert.Equal(t, "DELETE", answer.Verdicts.Items[0].Operation)

	// A user who may not watch sees it, too.
	loadUntil(t, listing, "a user without the verb watch sees the new policy", hasPolicy("toystore-auth"))
}
