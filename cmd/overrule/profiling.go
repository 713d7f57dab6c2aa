package main

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

// profiling serves the profiles of the process, to this machine alone: they hold
// pieces of what is in memory.
type profiling struct {
	address string
	log     logr.Logger
}

// longestProfile is how long a profile may take on its way: the usual one runs
// for 30 seconds.
const longestProfile = 5 * time.Minute

// NeedLeaderElection lets every replica be looked into.
func (p *profiling) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (p *profiling) Start(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", p.address)
	if err != nil {
		return fmt.Errorf("listen for whoever asks for profiles: %w", err)
	}
	p.log.Info("serving profiles", "address", listener.Addr().String())
	server := &http.Server{
		Handler: profiles(), ErrorLog: errorLog(p.log),
		ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: longestProfile, IdleTimeout: idleTimeout,
	}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve profiles: %w", err)
	}
	return nil
}

func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux // not /cmdline: what it was started with is in its manifest
}

// checkProfiling tells what is wrong with the address of profiles.
func checkProfiling(address string) error {
	if none(address) {
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("--pprof-bind-address=%q: %w", address, err)
	}
	if host == "localhost" {
		return nil
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("--pprof-bind-address=%q is not on loopback, and profiles tell what is in memory: give 127.0.0.1:6060, and reach it by kubectl port-forward", address)
	}
	return nil
}
