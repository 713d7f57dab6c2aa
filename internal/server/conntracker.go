package server

import (
	"container/list"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// retryResponse is the response on connections that the server closes. An API server
// sends the request again, to another replica.
const retryResponse = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

// connTracker tracks the connections of a server that wait for a request. At the
// connection limit it closes the oldest of those that have not sent any, so that
// clients without the path token cannot occupy all of them. At shutdown it closes
// those that wait without losing a request that arrives at the same moment.
type connTracker struct {
	limit int // of open connections; the listener enforces it

	mu   sync.Mutex
	open int
	// idle are the connections that wait for a request. The value is the position
	// in unused, nil after the first request.
	idle   map[*tls.Conn]*list.Element
	unused list.List // of *tls.Conn, oldest first
}

func newConnTracker(limit int) *connTracker {
	return &connTracker{limit: limit, idle: map[*tls.Conn]*list.Element{}}
}

// track is the ConnState hook of a server that serves HTTP/1.1 over TLS.
func (t *connTracker) track(c net.Conn, state http.ConnState) {
	conn, ok := c.(*tls.Conn)
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	switch state {
	case http.StateNew:
		t.open++
		t.idle[conn] = t.unused.PushBack(conn)
		t.evict(conn)
	case http.StateActive:
		t.forget(conn)
	case http.StateIdle:
		t.idle[conn] = nil
	case http.StateHijacked, http.StateClosed:
		t.forget(conn)
		t.open--
	}
}

func (t *connTracker) forget(conn *tls.Conn) {
	if place := t.idle[conn]; place != nil {
		t.unused.Remove(place)
	}
	delete(t.idle, conn)
}

// evict closes the oldest unused connection if the newest has reached the limit.
func (t *connTracker) evict(newest *tls.Conn) {
	if t.open < t.limit {
		return
	}
	if oldest, ok := t.unused.Front().Value.(*tls.Conn); ok && oldest != newest {
		t.forget(oldest)
		_ = oldest.NetConn().Close() // tls.Conn.Close might wait for the client
	}
}

// closeIdle responds on all connections that wait for a request. A connection
// that is just closed loses the request that is on its way: the API server does
// not send a POST again that may have been read. With a response it does, and
// without a request it closes the connection (RFC 9112, sections 6.3 and 9.6).
//
// The lock is held until the responses are written, so that no handler responds
// on one of these connections before or in between.
func (t *connTracker) closeIdle(deadline time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var group sync.WaitGroup
	for conn := range t.idle {
		group.Go(func() {
			// Ends the wait for the next request, and a handshake that Write waits for:
			// net/http may set other deadlines for the handshake after this.
			_ = conn.SetDeadline(deadline)
			late := time.AfterFunc(time.Until(deadline), func() { _ = conn.NetConn().Close() })
			defer late.Stop()
			if _, err := conn.Write([]byte(retryResponse)); err == nil {
				_ = conn.CloseWrite()
			}
		})
	}
	group.Wait()
}

// idleCount returns how many connections wait for a request.
func (t *connTracker) idleCount() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.idle)
}
