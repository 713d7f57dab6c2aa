package ui

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Options of a Server.
type Options struct {
	// Port is the port to listen on, 0 for a free one.
	Port int
	// Out receives the links to the page.
	Out io.Writer
	// Open opens a link in the browser; nil for not.
	Open func(url string) error
}

// Server serves the page.
type Server struct {
	model    *model
	session  *session
	listener net.Listener
	port     int
	hosts    []string
	options  Options
}

const (
	headerTimeout   = 10 * time.Second
	bodyTimeout     = 30 * time.Second
	idleTimeout     = 2 * time.Minute
	shutdownTimeout = 2 * time.Second
	maxHeader       = 64 << 10
)

// New loads the objects and listens on 127.0.0.1.
func New(ctx context.Context, source Source, o Options) (*Server, error) {
	m, err := newModel(ctx, source)
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", o.Port))
	if err != nil {
		return nil, fmt.Errorf("listen on port %d: %w; choose another one with --port", o.Port, err)
	}
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		return nil, errors.Join(fmt.Errorf("listen: unexpected address %s", listener.Addr()), listener.Close())
	}
	return &Server{
		model: m, session: newSession(), listener: listener, port: address.Port, options: o,
		hosts: []string{fmt.Sprintf("127.0.0.1:%d", address.Port), fmt.Sprintf("localhost:%d", address.Port)},
	}, nil
}

// URL returns the link to the page, which works once.
func (s *Server) URL() string { return s.urlWith(s.session.current()) }

func (s *Server) urlWith(token string) string {
	u := url.URL{Scheme: "http", Host: s.hosts[0], Path: "/", RawQuery: url.Values{tokenParameter: {token}}.Encode()}
	return u.String()
}

func (s *Server) printURL(token string) {
	_, _ = fmt.Fprintf(s.options.Out, "Another browser asked for the page. If it is yours, open %s\n", s.urlWith(token)) // a failed write to stderr cannot be reported
}

// Run prints the link and serves the page until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go s.model.follow(ctx)
	server := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: headerTimeout, ReadTimeout: bodyTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeader, BaseContext: func(net.Listener) context.Context { return ctx },
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(s.listener) }()
	s.announce()
	select {
	case err := <-done:
		return fmt.Errorf("serve the page: %w", err)
	case <-ctx.Done():
	}
	timeout, stop := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer stop()
	if err := server.Shutdown(timeout); err != nil {
		return errors.Join(server.Close()) // the requests that still run are given up
	}
	return nil
}

// announce prints the link, and opens it.
func (s *Server) announce() {
	link := s.URL()
	_, _ = fmt.Fprintf(s.options.Out, "Open %s (the link works once). Press Ctrl-C to stop.\n", link) // as in printURL
	if s.options.Open == nil {
		return
	}
	if err := s.options.Open(link); err != nil {
		_, _ = fmt.Fprintf(s.options.Out, "warning: cannot open a browser: %v; open the link yourself\n", err) // as in printURL
	}
}
