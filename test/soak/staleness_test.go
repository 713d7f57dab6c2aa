//go:build soak

package soak

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"k8s.io/client-go/dynamic"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/test/shop"
)

// staleProbe is a writer that does what the others avoid: it creates an override,
// and a moment later a route policy that unsets it. A replica whose cache does
// not have the override yet allows that, since replicas learn of writes by their
// watches. The test reports how often that happens, and does not fail.
type staleProbe struct {
	mu       sync.Mutex
	tried    map[time.Duration]*cacheStates
	older    []string // the phases
	counters *counters
	end      func()
}

// cacheStates counts the writes that were evaluated with a current cache, with a
// stale one, and not at all.
type cacheStates struct{ newest, older, none int }

// pauses are the times between the response to one write and the next write.
var pauses = []time.Duration{0, 5 * time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond}

// startStaleProbe starts the writer, for tenants without an override. It takes
// them in turn, so that caches have its deletions when it returns to a tenant.
func startStaleProbe(t *testing.T, tenants []tenant, c dynamic.Interface, beside *counters) *staleProbe {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	w := &staleProbe{tried: map[time.Duration]*cacheStates{}, counters: beside, end: func() {
		cancel()
		done.Wait()
	}}
	for _, p := range pauses {
		w.tried[p] = &cacheStates{}
	}
	t.Cleanup(w.end)
	done.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			w.try(ctx, c, tenants[i%len(tenants)], pauses[i%len(pauses)])
			time.Sleep(writeInterval)
		}
	})
	return w
}

func (w *staleProbe) try(ctx context.Context, c dynamic.Interface, in tenant, pause time.Duration) {
	ctx = context.WithoutCancel(ctx)
	override := create(authPolicies, in.expand(shop.GatewayAuth), "")
	if got, _ := outcomeOf(override.send(ctx, c)); got == stored {
		time.Sleep(pause)
		got, text := outcomeOf(create(authPolicies, in.expand(unsettingAuth), api.ReasonUnsetOverride).send(ctx, c))
		w.record(pause, got, text)
	}
	for _, last := range []write{remove(authPolicies, in.app, "auth", ""), remove(authPolicies, in.infra, "gw-auth", "")} {
		for range 100 {
			if got, _ := outcomeOf(last.send(ctx, c)); got == stored {
				break
			}
			time.Sleep(retryPause)
		}
	}
}

func (w *staleProbe) record(pause time.Duration, got outcome, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.tried[pause]
	switch {
	case got == denied && text == string(api.ReasonUnsetOverride):
		p.newest++
	case got == stored:
		p.older++
		w.older = append(w.older, w.counters.now().name)
	default:
		p.none++
	}
}

func (w *staleProbe) write(to io.Writer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(out, "unset after the override's response\tcurrent cache\tstale cache\tnot evaluated\t")
	for _, pause := range slices.Sorted(slices.Values(pauses)) {
		p := w.tried[pause]
		_, _ = fmt.Fprintf(out, "%s\t%d\t%d\t%d\t\n", pause, p.newest, p.older, p.none)
	}
	_ = out.Flush()
	if len(w.older) > 0 {
		_, _ = fmt.Fprintf(to, "stale cache during: %s\n", strings.Join(w.older, ", "))
	}
}
