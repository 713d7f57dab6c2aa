//go:build integration

package cache

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/env"
)

// BenchmarkCatchUp measures CatchUp with a real API server whose watches are up to date.
func BenchmarkCatchUp(b *testing.B) {
	e := env.Start(b)
	require.Zero(b, e.Apply(things, "--server-side").Code)
	cfg := rest.CopyConfig(e.Config)
	cfg.QPS = -1
	client, err := dynamic.NewForConfig(cfg)
	require.NoError(b, err)
	routes := client.Resource(schema.GroupVersionResource{Group: "gateway.networking.k8s.io", Version: "v1", Resource: "httproutes"}).Namespace("app")
	created := 0
	for _, count := range []int{1000, 10_000} {
		var group errgroup.Group
		group.SetLimit(16)
		for ; created < count; created++ {
			route := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
				"metadata": map[string]any{"name": fmt.Sprintf("route-%05d", created)},
				"spec":     map[string]any{"parentRefs": []any{map[string]any{"name": "edge"}}},
			}}
			group.Go(func() error {
				_, err := routes.Create(b.Context(), route, metav1.CreateOptions{})
				return err
			})
		}
		require.NoError(b, group.Wait())
		b.Run(fmt.Sprintf("%d routes", count), func(b *testing.B) {
			r := startBenchWatcher(b, cfg)
			for b.Loop() {
				_, err := r.CatchUp(b.Context(), nil)
				require.NoError(b, err)
			}
		})
	}
}

func startBenchWatcher(b *testing.B, cfg *rest.Config) *Watcher {
	s := snapshot.New(Sources...)
	w, err := New(cfg, s, Options{})
	require.NoError(b, err)
	began := time.Now()
	go func() { _ = w.Start(b.Context()) }()
	for _, ready := s.View(); !ready; _, ready = s.View() {
		time.Sleep(time.Millisecond)
	}
	b.Logf("ready after %s", time.Since(began))
	return w
}
