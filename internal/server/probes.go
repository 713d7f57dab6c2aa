package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"overrule.dev/overrule/certs"
	"overrule.dev/overrule/internal/cache"
	"overrule.dev/overrule/internal/snapshot"
)

// probeServer serves /healthz and /readyz. Unlike controller-runtime's probes it
// gives the reason of each failure, in the response and, when the failing checks
// change, in the log.
type probeServer struct {
	address string
	checks  map[string]healthz.Checker
	// warnings are problems that do not make the server unready, by name. /readyz
	// lists them as [!].
	warnings map[string]func() error
	// serving, if set, keeps the probes up during shutdown until the last call is
	// answered.
	serving *sync.WaitGroup
	log     logr.Logger

	mu   sync.Mutex
	last string
}

// headerTimeout limits how long a client may take to send the header of a probe or
// of a request for a profile.
const headerTimeout = 5 * time.Second

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica
// serves probes.
func (h *probeServer) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (h *probeServer) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", h.address)
	if err != nil {
		return fmt.Errorf("listen for probes: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.HandleFunc("/readyz", h.ready)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: headerTimeout, ErrorLog: errorLog(h.log)}
	stop := context.AfterFunc(ctx, func() {
		if h.serving != nil {
			h.serving.Wait()
		}
		_ = server.Close()
	})
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve probes: %w", err)
	}
	return nil
}

// check runs all checks. It returns the names of those that fail, and a line for
// each check.
func (h *probeServer) check(r *http.Request) (failing []string, lines string) {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(h.checks)) {
		if err := h.checks[name](r); err != nil {
			failing = append(failing, name)
			fmt.Fprintf(&text, "[-] %s: %v\n", name, err)
			continue
		}
		fmt.Fprintf(&text, "[+] %s\n", name)
	}
	return failing, text.String()
}

// gauge is the metric of readiness. Each scrape runs the checks; it logs nothing.
func (h *probeServer) gauge() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "overrule_ready", Help: "1 while the replica is ready, as in /readyz.",
	}, func() float64 {
		if failing, _ := h.check(&http.Request{}); len(failing) > 0 {
			return 0
		}
		return 1
	})
}

func (h *probeServer) ready(w http.ResponseWriter, r *http.Request) {
	var text strings.Builder
	failing, lines := h.check(r)
	text.WriteString(lines)
	for _, name := range slices.Sorted(maps.Keys(h.warnings)) {
		if err := h.warnings[name](); err != nil {
			fmt.Fprintf(&text, "[!] %s: %v\n", name, err)
		}
	}
	h.logChange(strings.Join(failing, ","), text.String())
	if len(failing) > 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = fmt.Fprint(w, text.String())
}

// addWarning adds a warning that is in effect while get returns an error.
func (h *probeServer) addWarning(name string, get func() error) {
	warnings := map[string]func() error{name: get}
	maps.Copy(warnings, h.warnings) // the caller may keep its map
	h.warnings = warnings
}

// addCallerWarning adds to the warning "callers", which covers client
// certificates and path tokens.
func (h *probeServer) addCallerWarning(get func() error) {
	warnings := map[string]func() error{}
	maps.Copy(warnings, h.warnings)
	if previous := warnings["callers"]; previous != nil {
		warnings["callers"] = func() error { return errors.Join(previous(), get()) }
	} else {
		warnings["callers"] = get
	}
	h.warnings = warnings
}

// logChange logs when the set of failing checks changes.
func (h *probeServer) logChange(failing, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if failing == h.last {
		return
	}
	h.last = failing
	if failing == "" {
		h.log.Info("ready")
		return
	}
	h.log.Info("not ready", "checks", strings.Split(strings.TrimSpace(text), "\n"))
}

// readinessChecks are the checks of /readyz: the server is ready once it can
// evaluate writes and clients trust its certificate, and while its cache is not stale.
func readinessChecks(s *snapshot.Store, c certs.Source, w *cache.Watcher, d *httpsServer) map[string]healthz.Checker {
	return map[string]healthz.Checker{
		"caches": func(*http.Request) error {
			if _, ready := s.View(); !ready {
				return fmt.Errorf("not listed yet: %v", s.Waiting())
			}
			return nil
		},
		"certificate":     c.Healthy,
		"cache-staleness": func(*http.Request) error { return w.StaleError() },
		"shutdown":        d.checkShutdown,
	}
}
