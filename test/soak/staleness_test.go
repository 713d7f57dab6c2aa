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

// staleProbe is the writer that asks for what the others avoid: it makes an
// override, and a moment later a route policy that unsets it. A replica that has
// not seen the override yet lets that through: replicas learn of writes by their
// watches. How often that happens is told, and no fault.
type staleProbe struct {
	mu       sync.Mutex
	tried    map[time.Duration]*cacheStates
	older    []string // in which phases
	counters *counters
	end      func()
}

// cacheStates are how many writes were judged on the newest picture of the cluster,
// and on an older one.
type cacheStates struct{ newest, older, none int }

// pauses are from the answer to one write to the sending of the other.
var pauses = []time.Duration{0, 5 * time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond}

// startStaleProbe starts the writer, in worlds without an override. It takes them in turn,
// so that what it deleted in one is long known when it comes back.
func startStaleProbe(t *testing.T, worlds []tenant, c dynamic.Interface, beside *counters) *staleProbe {
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
			w.try(ctx, c, worlds[i%len(worlds)], pauses[i%len(pauses)])
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
	_, _ = fmt.Fprintln(out, "an override's answer, then its unset after\ton the newest picture\ton an older one\tnot judged\t")
	for _, pause := range slices.Sorted(slices.Values(pauses)) {
		p := w.tried[pause]
		_, _ = fmt.Fprintf(out, "%s\t%d\t%d\t%d\t\n", pause, p.newest, p.older, p.none)
	}
	_ = out.Flush()
	if len(w.older) > 0 {
		_, _ = fmt.Fprintf(to, "on an older one while: %s\n", strings.Join(w.older, ", "))
	}
}
