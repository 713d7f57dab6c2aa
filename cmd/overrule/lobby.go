package main

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
)

// lobby lets in so many connections at once. One that has not sent a request
// by a path that is known may lose its place to the next that comes: whoever
// opens connections, and shakes hands at most, keeps nobody out. Where all have
// sent one, the next waits.
type lobby struct {
	net.Listener
	places chan struct{}
	closed chan struct{}
	once   sync.Once

	mu     sync.Mutex
	silent *list.List // of *guest, the oldest first
}

func newLobby(l net.Listener, places int) *lobby {
	return &lobby{Listener: l, places: make(chan struct{}, places), closed: make(chan struct{}), silent: list.New()}
}

// guest is a connection with a place.
type guest struct {
	net.Conn
	lobby  *lobby
	leaves sync.Once
	seat   *list.Element // nil once it keeps its place; under the lobby's lock
}

// Accept implements net.Listener.
func (l *lobby) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if !l.place() {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	g := &guest{Conn: &patient{Conn: conn}, lobby: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	g.seat = l.silent.PushBack(g)
	return g, nil
}

// place takes a place, if need be from the one that has been silent longest. It
// is false once the lobby is closed.
func (l *lobby) place() bool {
	select {
	case l.places <- struct{}{}:
		return true
	default:
	}
	if g := l.oldest(); g != nil {
		_ = g.Close()
	}
	select {
	case l.places <- struct{}{}:
		return true
	case <-l.closed:
		return false
	}
}

func (l *lobby) oldest() *guest {
	l.mu.Lock()
	defer l.mu.Unlock()
	if first := l.silent.Front(); first != nil {
		return first.Value.(*guest) //nolint:forcetypeassert // nothing else is in there
	}
	return nil
}

// Close implements net.Listener.
func (l *lobby) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// Close gives the place back.
func (g *guest) Close() error {
	err := g.Conn.Close()
	g.leaves.Do(func() {
		g.settle()
		<-g.lobby.places
	})
	return err
}

// settle has the guest keep its place.
func (g *guest) settle() {
	g.lobby.mu.Lock()
	defer g.lobby.mu.Unlock()
	if g.seat != nil {
		g.lobby.silent.Remove(g.seat)
		g.seat = nil
	}
}

// guestKey is where the context of a connection has its guest.
type guestKey struct{}

// greet keeps a guest in the context of all requests that it sends.
func greet(ctx context.Context, conn net.Conn) context.Context {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	if g, ok := conn.(*guest); ok {
		return context.WithValue(ctx, guestKey{}, g)
	}
	return ctx
}

// heard is told of a request by a path that is known. That a connection speaks
// HTTP proves nothing: the preface of HTTP/2 takes no secret.
func heard(r *http.Request) {
	if g, ok := r.Context().Value(guestKey{}).(*guest); ok {
		g.settle()
	}
}
