package main

import (
	"cmp"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// farewell is the answer to a request that is not read any more. An API server
// sends it again, to another replica.
const farewell = "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

// farewellLimit is how long clients have to take their leave.
const farewellLimit = time.Second

// waiting keeps in mind which connections wait for a request. To just close one
// loses the request that crosses with that: its client has sent it and cannot
// know whether it was read. A client that is answered before it has asked takes
// the answer for that of the request, and one that has sent nothing has to close
// the connection (RFC 9112, section 9.6 and 6.3).
type waiting struct {
	limit time.Duration // 0 means farewellLimit

	mu    sync.Mutex
	conns map[*tls.Conn]*waiter
}

// waiter is one of them. Its lock is held while it is told farewell: no handler
// answers in the middle of that.
type waiter struct {
	sync.Mutex
	busy bool // it has sent a request
	gone chan struct{}
}

// note is told by the server what becomes of a connection.
func (w *waiting) note(conn net.Conn, state http.ConnState) {
	secure, ok := conn.(*tls.Conn)
	if !ok {
		return
	}
	switch state {
	case http.StateNew:
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.conns == nil {
			w.conns = map[*tls.Conn]*waiter{}
		}
		w.conns[secure] = &waiter{gone: make(chan struct{})}
	case http.StateActive, http.StateIdle:
		if one := w.find(secure); one != nil {
			one.Lock()
			defer one.Unlock()
			one.busy = state == http.StateActive
		}
	case http.StateClosed, http.StateHijacked:
		w.forget(secure)
	}
}

func (w *waiting) find(conn *tls.Conn) *waiter {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.conns[conn]
}

func (w *waiting) forget(conn *tls.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if one := w.conns[conn]; one != nil {
		close(one.gone)
		delete(w.conns, conn)
	}
}

// dismiss tells all that wait farewell, and gives them a moment to close.
func (w *waiting) dismiss() {
	end := time.Now().Add(cmp.Or(w.limit, farewellLimit))
	var group sync.WaitGroup
	w.mu.Lock()
	for conn, one := range w.conns {
		group.Go(func() { one.dismiss(conn, end) })
	}
	w.mu.Unlock()
	group.Wait()
}

func (one *waiter) dismiss(conn *tls.Conn, end time.Time) {
	if !one.tell(conn, end) {
		return
	}
	// What comes yet is read and thrown away by the server: a connection that is
	// closed before it was read to its end is reset, and the answer lost.
	patience := time.NewTimer(time.Until(end))
	defer patience.Stop()
	select {
	case <-one.gone:
	case <-patience.C:
		_ = conn.Close()
	}
}

// tell sends the farewell, if nothing was sent yet.
func (one *waiter) tell(conn *tls.Conn, end time.Time) bool {
	if !shaken(conn, end) {
		return false
	}
	one.Lock()
	defer one.Unlock()
	if one.busy {
		return false
	}
	if err := conn.SetWriteDeadline(end); err != nil {
		return false
	}
	if _, err := conn.Write([]byte(farewell)); err != nil {
		return false
	}
	return conn.CloseWrite() == nil
}

// shaken reports whether a connection can be written to, as HTTP/1.1: with
// HTTP/2, the server itself has a farewell.
func shaken(conn *tls.Conn, end time.Time) bool {
	done := make(chan bool, 1)
	go func() { // it waits for a handshake that is under way, until the server gives that up
		state := conn.ConnectionState()
		done <- state.HandshakeComplete && state.NegotiatedProtocol != "h2"
	}()
	patience := time.NewTimer(time.Until(end))
	defer patience.Stop()
	select {
	case is := <-done:
		return is
	case <-patience.C:
		return false
	}
}
