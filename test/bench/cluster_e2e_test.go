//go:build e2e

package bench_test

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/server"
	"overrule.dev/overrule/test/worlds"
)

// cluster is a real control plane that stores a fixture, and has the objects that
// a server needs.
type cluster struct {
	*env.Env
	site *server.Site
	size worlds.Size
}

// newCluster boots a control plane and creates the objects of a fixture with that
// many routes, a tenth as many gateways, and one policy for each. It is stopped,
// and its data removed, when the test or benchmark ends.
func newCluster(tb testing.TB, routes int) *cluster {
	tb.Helper()
	size := worlds.Size{Gateways: max(routes/10, 2), Routes: routes}
	return storing(tb, size, worlds.Objects(size))
}

// storing boots a control plane that stores some objects of a worlds.
func storing(tb testing.TB, size worlds.Size, objects iter.Seq[map[string]any]) *cluster {
	tb.Helper()
	ctrl.SetLogger(logr.Discard()) // envtest logs each CRD that it installs
	c := &cluster{Env: env.Start(tb), size: size}
	start := time.Now()
	require.NoError(tb, c.fill(tb.Context(), objects))
	tb.Logf("created %d routes, %d gateways and their policies in %s", c.size.Routes, c.size.Gateways, time.Since(start).Round(time.Second))
	var err error
	c.site, err = server.Install(tb.Context(), c.Env)
	require.NoError(tb, err)
	return c
}

// writers is the number of concurrent writers: enough to keep the API server
// busy.
const writers = 64

// fill creates objects. No webhook may be registered yet, or it would evaluate
// each of them. Namespaces come first, as in a fixture; their objects are created
// once all namespaces exist.
func (c *cluster) fill(ctx context.Context, objects iter.Seq[map[string]any]) error {
	to, err := c.client()
	if err != nil {
		return err
	}
	namespaces, others := errgroup.Group{}, errgroup.Group{}
	namespaces.SetLimit(writers)
	others.SetLimit(writers)
	created := false
	for object := range objects {
		if object["kind"] == "Namespace" {
			namespaces.Go(func() error { return create(ctx, to, object) })
			continue
		}
		if !created {
			if err := namespaces.Wait(); err != nil {
				return err
			}
			created = true
		}
		others.Go(func() error { return create(ctx, to, object) })
	}
	return others.Wait()
}

// client returns a client without rate limit that ignores warnings.
func (c *cluster) client() (client.Client, error) {
	config := rest.CopyConfig(c.Config)
	config.QPS = -1
	config.WarningHandler = rest.NoWarnings{}
	return client.New(config, client.Options{})
}

func create(ctx context.Context, to client.Client, object map[string]any) error {
	if err := to.Create(ctx, withoutServerFields(object)); err != nil {
		return fmt.Errorf("create %s: %w", worlds.RefOf(object), err)
	}
	return nil
}

// withoutServerFields returns an object without the fields that the API server
// sets.
func withoutServerFields(object map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: maps.Clone(object)}
	metadata := maps.Clone(object["metadata"].(map[string]any))
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp", "generation"} {
		delete(metadata, field)
	}
	u.Object["metadata"] = metadata
	return u
}

// build builds one of the programs of this folder, and returns its file.
func build(tb testing.TB, name string) string {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), name)
	out, err := exec.CommandContext(tb.Context(), "go", "build", "-o", file, "./"+name).CombinedOutput()
	require.NoError(tb, err, string(out))
	return file
}
