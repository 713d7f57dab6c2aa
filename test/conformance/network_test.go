package conformance

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

// network gives each gateway an address of the loopback interface, and listens on the
// ports of its TCP, TLS and UDP listeners: the tests dial those. They hand HTTP requests
// to a round tripper.
type network struct {
	serveTCP func(net.Conn, socket)
	serveUDP func(net.PacketConn, socket)

	mu        sync.Mutex
	addresses map[api.Ref]string
	pods      int
	open      map[socket]io.Closer
	serving   sync.WaitGroup
}

// socket is a port of a gateway.
type socket struct {
	gateway   api.Ref
	transport gateway.Transport
	port      int32
}

func newNetwork() *network {
	return &network{addresses: make(map[api.Ref]string), open: make(map[socket]io.Closer)}
}

// address returns the address of a gateway.
func (n *network) address(g api.Ref) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.addressOf(g)
}

func (n *network) addressOf(g api.Ref) string {
	if _, ok := n.addresses[g]; !ok {
		i := len(n.addresses) + 1
		n.addresses[g] = fmt.Sprintf("127.71.%d.%d", i/250, i%250+1)
	}
	return n.addresses[g]
}

// podAddress returns an address for a pod. Nothing listens on it.
func (n *network) podAddress() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pods++
	return fmt.Sprintf("10.71.%d.%d", n.pods/250, n.pods%250+1)
}

// gateway returns the gateway at an address, and the port.
func (n *network) gateway(v *snapshot.View, address string, port int32) (*gateway.Gateway, int32, error) {
	host := address
	if h, p, err := net.SplitHostPort(address); err == nil {
		number, err := strconv.ParseInt(p, 10, 32)
		if err != nil {
			return nil, 0, err
		}
		host, port = h, int32(number)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for ref, a := range n.addresses {
		if g := v.Gateway(ref.Namespace, ref.Name); a == host && g != nil {
			return g, port, nil
		}
	}
	return nil, 0, fmt.Errorf("no gateway has the address %s", address)
}

// listen listens on the ports of the gateways of a view, and no longer on others.
func (n *network) listen(v *snapshot.View) error {
	wanted := make(map[socket]bool)
	for g := range v.Gateways() {
		for _, l := range listenersOf(v, g) {
			switch t := gateway.Transport(l.Listener.Protocol); t {
			case gateway.TransportTCP, gateway.TransportTLS, gateway.TransportUDP:
				wanted[socket{g.Ref(), t, l.Listener.Port}] = true
			default:
			}
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	var errs []error
	for s, c := range n.open {
		if !wanted[s] {
			errs = append(errs, c.Close())
			delete(n.open, s)
		}
	}
	for s := range wanted {
		if n.open[s] != nil {
			continue
		}
		c, err := n.start(s)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		n.open[s] = c
	}
	return errors.Join(errs...)
}

// start serves the connections or packets to a port.
func (n *network) start(s socket) (io.Closer, error) {
	at := net.JoinHostPort(n.addressOf(s.gateway), strconv.Itoa(int(s.port)))
	if s.transport == gateway.TransportUDP {
		c, err := net.ListenPacket("udp", at)
		if err == nil {
			n.serving.Go(func() { n.serveUDP(c, s) })
		}
		return c, err
	}
	l, err := net.Listen("tcp", at)
	if err != nil {
		return nil, err
	}
	n.serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return // it was closed
			}
			n.serving.Go(func() { n.serveTCP(c, s) })
		}
	})
	return l, nil
}

// close closes all ports, and waits until nothing is served any more.
func (n *network) close() error {
	n.mu.Lock()
	var errs []error
	for _, c := range n.open {
		errs = append(errs, c.Close())
	}
	n.mu.Unlock()
	n.serving.Wait()
	return errors.Join(errs...)
}
