package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"overrule.dev/overrule/certs"
	"overrule.dev/overrule/webhook"
)

// frontDoor serves HTTPS, with what it needs behind it. On the way out it goes
// on answering for a while, and what feeds it ends last: a server that is being
// replaced loses no call.
type frontDoor struct {
	address      string
	connections  int // at once; more wait to be accepted
	drain        time.Duration
	hooks        *webhook.Server
	certificates certs.Source
	callers      *certs.Callers // nil: anybody may call
	feeders      []manager.Runnable
	log          logr.Logger
	closing      atomic.Bool
	serving      *sync.WaitGroup // if set, until the last call is answered
	waiting      waiting
}

// NeedLeaderElection lets every replica serve.
func (d *frontDoor) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (d *frontDoor) Start(ctx context.Context) error {
	if d.serving != nil {
		d.serving.Add(1)
		defer d.serving.Done()
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", d.address)
	if err != nil {
		return fmt.Errorf("listen for admission reviews: %w", err)
	}
	listener = newLobby(listener, d.connections)
	feeding, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	group, failed := errgroup.WithContext(feeding)
	for _, f := range d.feeders {
		group.Go(func() error { return f.Start(failed) })
	}
	server := d.server()
	group.Go(func() error {
		if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve admission reviews: %w", err)
		}
		return nil
	})
	d.log.Info("serving", "address", listener.Addr().String())
	select {
	case <-ctx.Done():
		d.leave(ctx, server)
	case <-failed.Done():
		_ = server.Close() // the group's error tells why
	}
	stop()
	return group.Wait()
}

// leave sends clients elsewhere, and then ends the server.
func (d *frontDoor) leave(ctx context.Context, server *http.Server) {
	d.closing.Store(true)
	d.hooks.Drain()
	d.log.Info("draining", "period", d.drain.String())
	time.Sleep(d.drain)
	d.waiting.dismiss()
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := server.Shutdown(ending); err != nil {
		d.log.Error(err, "end the server: calls were cut off")
		return
	}
	d.log.Info("drained")
}

// Limits of a connection: an admission review comes in one piece.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 15 * time.Second
	writeTimeout  = 45 * time.Second // the longest timeoutSeconds is 30
	idleTimeout   = 2 * time.Minute
	headerBytes   = 16 << 10
	// mostConnections keep goroutines and buffers within bounds. An API server
	// has one for each call under way, and some idle ones.
	mostConnections = 2048
)

func (d *frontDoor) server() *http.Server {
	return &http.Server{
		Handler:           d.handler(),
		TLSConfig:         d.tls(),
		ConnState:         d.waiting.note,
		ConnContext:       d.greet,
		HTTP2:             webhook.HTTP2(),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    headerBytes,
		ErrorLog:          errorLog(d.log),
		// Else it answers OPTIONS * by itself, and not as any other path.
		DisableGeneralOptionsHandler: true,
	}
}

// greet is what is known of a connection when its requests come.
func (d *frontDoor) greet(ctx context.Context, conn net.Conn) context.Context {
	ctx = greet(ctx, conn)
	if d.callers != nil {
		ctx = d.callers.Remember(ctx, conn)
	}
	return ctx
}

// handler holds each request to what the handshake was held to: a connection
// can outlive the authorities that let it in.
func (d *frontDoor) handler() http.Handler {
	d.hooks.Known = heard
	hooks := d.hooks.Handler()
	if d.callers == nil {
		return hooks
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := d.callers.Standing(r); err != nil {
			d.log.Info("a caller may not call any more", "from", r.RemoteAddr, "reason", err.Error())
			d.hooks.SendBack(w)
			return
		}
		hooks.ServeHTTP(w, r)
	})
}

func (d *frontDoor) tls() *tls.Config {
	c := certs.TLSConfig(d.certificates)
	if d.callers == nil {
		return c
	}
	return d.callers.Require(c)
}

// open is a readiness check: it fails once the server is on its way out.
func (d *frontDoor) open(*http.Request) error {
	if d.closing.Load() {
		return errors.New("draining")
	}
	return nil
}
