package main

import (
	"net"
	"sync/atomic"
	"time"
)

// patient is a connection whose client may be silent for as long after the
// handshake as between two requests. The server would count the time for the
// first head from the end of the handshake. An API server dials one more
// connection than it comes to need, and keeps it: one that it finds closed when
// it sends its first request there costs that call, which it does not send again.
type patient struct {
	net.Conn
	stage atomic.Int32
}

// Stages of a connection. The server lifts the deadline of the handshake before
// it sets that of the first head.
const (
	shaking int32 = iota
	greeted
	silent
	begun
)

// SetReadDeadline implements net.Conn.
func (p *patient) SetReadDeadline(t time.Time) error {
	switch {
	case t.IsZero():
		p.stage.CompareAndSwap(shaking, greeted)
	case p.stage.CompareAndSwap(greeted, silent):
		t = time.Now().Add(idleTimeout)
	}
	return p.Conn.SetReadDeadline(t)
}

// Read implements net.Conn. The time for the first head begins with its first
// byte.
func (p *patient) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	if n > 0 && p.stage.CompareAndSwap(silent, begun) {
		if late := p.Conn.SetReadDeadline(time.Now().Add(headerTimeout)); err == nil {
			err = late
		}
	}
	return n, err
}
