package commands

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"overrule.dev/overrule/internal/cache"
	"overrule.dev/overrule/internal/cli/manifest"
	"overrule.dev/overrule/internal/cli/printers"
	"overrule.dev/overrule/internal/cli/ui"
	"overrule.dev/overrule/internal/snapshot"
)

// warnings collects the lines of warnings.
type warnings struct{ bytes.Buffer }

func (w *warnings) lines() []string {
	var out []string
	for line := range strings.Lines(w.String()) {
		out = append(out, strings.TrimPrefix(strings.TrimSpace(line), "warning: "))
	}
	return out
}

// fileFeed feeds the page with manifests. Standard input is read once.
type fileFeed struct {
	app   *app
	paths []string
	stdin []byte
	files *ui.Files
}

func (a *app) newFileFeed(paths []string) (*fileFeed, error) {
	f := &fileFeed{app: a, paths: paths}
	var err error
	if slices.Contains(paths, manifest.Stdin) {
		if f.stdin, err = io.ReadAll(io.LimitReader(a.In, manifest.MaxSize+1)); err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
	}
	isStdin := func(p string) bool { return p == manifest.Stdin }
	f.files, err = ui.NewFiles(slices.DeleteFunc(slices.Clone(paths), isStdin))
	return f, err
}

// Close implements ui.Source.
func (f *fileFeed) Close() error { return f.files.Close() }

// Name implements ui.Source.
func (f *fileFeed) Name() string {
	names := slices.Clone(f.paths)
	if i := slices.Index(names, manifest.Stdin); i >= 0 {
		names[i] = "standard input"
	}
	return strings.Join(names, ", ")
}

// Load implements ui.Source.
func (f *fileFeed) Load(ctx context.Context) (ui.State, error) {
	a, said := f.app.quietApp(bytes.NewReader(f.stdin))
	s, err := a.loadSource(ctx, f.paths)
	if err != nil {
		return nil, err
	}
	return newUIState(f.app, s, said.lines())
}

// Wait implements ui.Source.
func (f *fileFeed) Wait(ctx context.Context) error { return f.files.Wait(ctx) }

const (
	// settleTime collects the events of a change of several objects.
	settleTime = 300 * time.Millisecond
	// healthInterval is how often the connection to the cluster is checked.
	healthInterval = 2 * time.Second
	// relistInterval is how often a cluster is listed that cannot be watched with the
	// rights of the user.
	relistInterval = time.Minute
	// disconnectedTime is for how long a watch must be closed to count as disconnected:
	// the API server closes each from time to time.
	disconnectedTime = 5 * time.Second
)

// clusterFeed feeds the page with the objects of a cluster. They are listed first, which
// fails with a clear error, and watched from then on.
type clusterFeed struct {
	app     *app
	config  *rest.Config
	store   *snapshot.Store
	watcher *cache.Watcher
	changed chan struct{}
	cancel  context.CancelFunc
	stopped sync.WaitGroup

	last *snapshot.View // that was loaded last
	// listed is when the cluster was listed, zero if it could not be.
	listed time.Time
}

func (a *app) newClusterFeed(ctx context.Context) (*clusterFeed, error) {
	config, err := a.clusterConfig()
	if err != nil {
		return nil, err
	}
	store := snapshot.New(cache.Sources...)
	watcher, err := cache.New(config, store, cache.Options{})
	if err != nil {
		return nil, clusterError(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	f := &clusterFeed{
		app: a, config: config, store: store, watcher: watcher, changed: make(chan struct{}, 1), cancel: cancel,
	}
	store.Subscribe(func([]snapshot.Event) {
		select {
		case f.changed <- struct{}{}:
		default: // already signalled
		}
	})
	f.stopped.Go(func() { _ = watcher.Start(ctx) }) // it returns nil
	return f, nil
}

// Close implements ui.Source.
func (f *clusterFeed) Close() error {
	f.cancel()
	f.stopped.Wait()
	return nil
}

// Name implements ui.Source.
func (f *clusterFeed) Name() string { return f.config.Host }

// Load implements ui.Source.
func (f *clusterFeed) Load(ctx context.Context) (ui.State, error) {
	view, ready := f.store.View()
	if !ready {
		return f.list(ctx)
	}
	if err := disconnected(f.watcher.Health(), time.Now()); err != nil {
		return nil, err
	}
	if view == f.last {
		return nil, ui.ErrUnchanged
	}
	s, err := f.app.sourceOf(view, f.watcher.Problems())
	if err != nil {
		return nil, err
	}
	f.last = view
	return newUIState(f.app, s, printers.Texts(s.unread, cache.Problem.String))
}

// list lists the cluster, before it is watched.
func (f *clusterFeed) list(ctx context.Context) (ui.State, error) {
	if time.Since(f.listed) < relistInterval {
		return nil, ui.ErrUnchanged
	}
	a, said := f.app.quietApp(nil)
	s, err := a.clusterSource(ctx)
	forbidden := apierrors.IsForbidden(err)
	if f.listed = (time.Time{}); err == nil || forbidden {
		f.listed = time.Now()
	}
	switch {
	case forbidden:
		return f.app.newUnlistedState(ctx)
	case err != nil:
		return nil, err
	}
	return newUIState(f.app, s, said.lines())
}

// disconnected returns why a resource that was read is not watched any more, or nil. A
// user who is not allowed to watch it is connected: it is listed from time to time.
func disconnected(resources []cache.SourceHealth, now time.Time) error {
	for _, h := range resources {
		closed := !h.DisconnectedSince.IsZero() && now.Sub(h.DisconnectedSince) > disconnectedTime
		if h.Synced && closed && h.Err != nil && !apierrors.IsForbidden(h.Err) {
			return fmt.Errorf("not connected to the cluster: %w", h.Err)
		}
	}
	return nil
}

// Wait implements ui.Source.
func (f *clusterFeed) Wait(ctx context.Context) error {
	select {
	case <-f.changed:
		time.Sleep(settleTime)
		return ctx.Err()
	case <-time.After(healthInterval):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
