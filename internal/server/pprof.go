package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/go-logr/logr"
)

// pprofServer serves pprof profiles on the loopback interface only: they contain
// data from memory.
type pprofServer struct {
	address string
	log     logr.Logger
}

// profileTimeout limits how long a response may take. The default CPU profile takes
// 30 seconds.
const profileTimeout = 5 * time.Minute

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica
// serves profiles.
func (p *pprofServer) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (p *pprofServer) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", p.address)
	if err != nil {
		return fmt.Errorf("listen for pprof: %w", err)
	}
	p.log.Info("serving pprof", "address", listener.Addr().String())
	server := &http.Server{
		Handler: pprofHandler(), ErrorLog: errorLog(p.log),
		ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: profileTimeout, IdleTimeout: idleTimeout,
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve pprof: %w", err)
	}
	return nil
}

func pprofHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux // without /cmdline: the manifest has the arguments
}

// isLoopback reports whether address is HOST:PORT on the loopback interface.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && (host == "localhost" || net.ParseIP(host).IsLoopback())
}

// isDisabled reports whether an address disables its listener.
func isDisabled(address string) bool { return address == "" || address == "0" }
