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
)

// health serves /healthz and /readyz. Unlike controller-runtime's it says why a
// check fails, to whoever asks and, when that changes, in the log: a probe that
// fails at three in the morning has to explain itself.
type probeServer struct {
	address string
	checks  map[string]healthz.Checker
	// notes tell what somebody should look at though the server does its work.
	warnings map[string]func() error
	// serving, if set, is what probes are answered for: a server that is on its
	// way out says so for as long as it answers calls.
	serving *sync.WaitGroup
	log     logr.Logger

	mu   sync.Mutex
	last string
}

// headerTimeout is how long the header of a probe, or of a request for a profile, may take.
const headerTimeout = 5 * time.Second

// NeedLeaderElection lets every replica be probed.
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

// check makes all checks: what fails, and a line for each.
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

// gauge is what /readyz would answer when it is scraped. No probe has to come
// first, and what a scrape finds is not logged: scrapes are no probes.
func (h *probeServer) gauge() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "overrule_ready", Help: "1 while the replica can judge, as /readyz says it.",
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

// note adds one to the notes.
func (h *probeServer) addWarning(name string, tell func() error) {
	notes := map[string]func() error{name: tell}
	maps.Copy(notes, h.warnings) // they are an identity's
	h.warnings = notes
}

// tell logs a change of what fails.
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
