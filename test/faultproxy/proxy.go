// Package faultproxy forwards TCP connections and injects faults on the way: it
// delays or holds back what one side sends, resets connections, or loses the
// response to a request that was forwarded. With several servers it balances as a
// Service does.
package faultproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// Behavior is what happens to the bytes of one direction.
type Behavior int

const (
	// Forward forwards them.
	Forward Behavior = iota
	// Hold keeps connections open and forwards nothing, not even that one side has
	// closed. What was held back is forwarded once the behavior changes.
	Hold
	// Sever resets a connection as soon as it would have to forward anything.
	Sever
)

// Direction is the faults of one direction.
type Direction struct {
	Behavior Behavior
	// Delay is added to each chunk that is forwarded.
	Delay time.Duration
}

// Faults are the faults of all connections of a proxy. The zero value forwards
// everything.
type Faults struct {
	// ToServer is for requests, ToClient for responses. ToClient with Sever is a
	// response that is lost after the server has handled the request.
	ToServer, ToClient Direction
	// Reject resets new connections.
	Reject bool
}

// Both are faults of both directions.
func Both(d Direction) Faults { return Faults{ToServer: d, ToClient: d} }

// Proxy is a TCP proxy with faults. It is safe for concurrent use.
type Proxy struct {
	listener net.Listener
	served   sync.WaitGroup
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc

	mu      sync.Mutex
	targets []string
	faults  Faults
	changed chan struct{} // closed when the faults change
	conns   map[*conn]struct{}
	total   map[string]int // accepted connections, by target
	next    int
}

// conn is one forwarded connection.
type conn struct {
	target         string
	client, server *net.TCPConn
	ctx            context.Context // ends with the connection
	cancel         context.CancelFunc
}

// Start starts a proxy on an address, such as 127.0.0.1:0. The caller calls Close.
func Start(ctx context.Context, address string, targets ...string) (*Proxy, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("start a proxy of %s: %w", targets, err)
	}
	p := &Proxy{listener: listener, targets: targets, changed: make(chan struct{}), conns: map[*conn]struct{}{}, total: map[string]int{}}
	p.ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	p.served.Go(p.accept)
	return p, nil
}

// Address is the host:port that the proxy listens on.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// SetTargets sets the servers of new connections, which get them in turn. Without any,
// new connections are reset. An open connection stays with its server.
func (p *Proxy) SetTargets(addresses ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.targets = addresses
}

// Set replaces the faults of all connections, open and new ones.
func (p *Proxy) Set(f Faults) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = f
	close(p.changed)
	p.changed = make(chan struct{})
}

// Reset resets all open connections.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		c.reset()
	}
}

// Connections returns how many connections to a target are open, and how many were
// accepted.
func (p *Proxy) Connections(target string) (open, total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		if c.target == target {
			open++
		}
	}
	return open, p.total[target]
}

// Close stops the proxy and resets its connections.
func (p *Proxy) Close() error {
	p.cancel()
	err := p.listener.Close()
	p.Reset()
	p.served.Wait()
	if err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("stop the proxy: %w", err)
	}
	return nil
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.served.Go(func() { p.serve(client.(*net.TCPConn)) })
	}
}

func (p *Proxy) serve(client *net.TCPConn) {
	target, ok := p.connect()
	if !ok {
		reset(client)
		return
	}
	server, err := new(net.Dialer).DialContext(p.ctx, "tcp", target)
	if err != nil {
		reset(client)
		return
	}
	c := &conn{target: target, client: client, server: server.(*net.TCPConn)}
	c.ctx, c.cancel = context.WithCancel(p.ctx)
	p.add(c)
	defer p.remove(c)
	var pumps sync.WaitGroup
	pumps.Go(func() { p.pump(c, c.client, c.server, func(f Faults) Direction { return f.ToServer }) })
	pumps.Go(func() { p.pump(c, c.server, c.client, func(f Faults) Direction { return f.ToClient }) })
	pumps.Wait()
}

// connect returns the target of a new connection, unless that is to be reset.
func (p *Proxy) connect() (target string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.faults.Reject || len(p.targets) == 0 {
		return "", false
	}
	p.next++
	target = p.targets[p.next%len(p.targets)]
	p.total[target]++
	return target, true
}

func (p *Proxy) add(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[c] = struct{}{}
	if p.ctx.Err() != nil { // Close may have missed it
		c.reset()
	}
}

func (p *Proxy) remove(c *conn) {
	c.cancel()
	_ = c.client.Close()
	_ = c.server.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// pump forwards one direction of a connection until one side closes it.
func (p *Proxy) pump(c *conn, from, to *net.TCPConn, direction func(Faults) Direction) {
	chunk := make([]byte, 32<<10)
	for {
		n, err := from.Read(chunk)
		if !p.await(c, direction) {
			c.reset()
			return
		}
		if n > 0 {
			if _, err := to.Write(chunk[:n]); err != nil {
				c.reset()
				return
			}
		}
		if errors.Is(err, io.EOF) {
			_ = to.CloseWrite()
			return
		}
		if err != nil {
			c.reset()
			return
		}
	}
}

// await waits until a direction forwards. It returns false if the connection is
// to be reset.
func (p *Proxy) await(c *conn, direction func(Faults) Direction) bool {
	for delayed := false; ; {
		p.mu.Lock()
		d, changed := direction(p.faults), p.changed
		p.mu.Unlock()
		var wait <-chan time.Time
		switch {
		case d.Behavior == Sever:
			return false
		case d.Behavior == Hold:
		case d.Delay > 0 && !delayed:
			wait = time.After(d.Delay)
		default:
			return true
		}
		select {
		case <-wait:
			delayed = true
		case <-changed:
		case <-c.ctx.Done():
			return false
		}
	}
}

func (c *conn) reset() {
	c.cancel()
	reset(c.client)
	reset(c.server)
}

// reset closes a connection with RST instead of FIN.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}
