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
	// details, if set, describe the state of a check that succeeds, by its name.
	details map[string]func() string
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
func (p *probeServer) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (p *probeServer) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", p.address)
	if err != nil {
		return fmt.Errorf("listen for probes: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "ok") })
	mux.HandleFunc("/readyz", p.ready)
	server := &http.Server{Handler: mux, ReadHeaderTimeout: headerTimeout, ErrorLog: errorLog(p.log)}
	stop := context.AfterFunc(ctx, func() {
		if p.serving != nil {
			p.serving.Wait()
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
func (p *probeServer) check(r *http.Request) (failing []string, lines string) {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(p.checks)) {
		if err := p.checks[name](r); err != nil {
			failing = append(failing, name)
			fmt.Fprintf(&text, "[-] %s: %v\n", name, err)
			continue
		}
		fmt.Fprintf(&text, "[+] %s", name)
		if detail := p.details[name]; detail != nil {
			fmt.Fprintf(&text, ": %s", detail())
		}
		text.WriteByte('\n')
	}
	return failing, text.String()
}

// gauge is the metric of readiness. Each scrape runs the checks; it logs nothing.
func (p *probeServer) gauge() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "overrule_ready", Help: "1 while the replica is ready, as in /readyz.",
	}, func() float64 {
		if failing, _ := p.check(&http.Request{}); len(failing) > 0 {
			return 0
		}
		return 1
	})
}

func (p *probeServer) ready(w http.ResponseWriter, r *http.Request) {
	var text strings.Builder
	failing, lines := p.check(r)
	text.WriteString(lines)
	for _, name := range slices.Sorted(maps.Keys(p.warnings)) {
		if err := p.warnings[name](); err != nil {
			fmt.Fprintf(&text, "[!] %s: %v\n", name, err)
		}
	}
	p.logChange(strings.Join(failing, ","), text.String())
	if len(failing) > 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = fmt.Fprint(w, text.String())
}

// addWarning adds a warning that is in effect while get returns an error, to those of the
// name.
func (p *probeServer) addWarning(name string, get func() error) {
	warnings := map[string]func() error{}
	maps.Copy(warnings, p.warnings) // the caller may keep its map
	if previous := warnings[name]; previous != nil {
		warnings[name] = func() error { return errors.Join(previous(), get()) }
	} else {
		warnings[name] = get
	}
	p.warnings = warnings
}

// logChange logs when the set of failing checks changes.
func (p *probeServer) logChange(failing, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if failing == p.last {
		return
	}
	p.last = failing
	if failing == "" {
		p.log.Info("ready")
		return
	}
	p.log.Info("not ready", "checks", strings.Split(strings.TrimSpace(text), "\n"))
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
