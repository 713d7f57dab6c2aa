package conformance

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/conformance/echo-basic/tcpserver"
	"sigs.k8s.io/gateway-api/conformance/echo-basic/udpechoserver"

	"overrule.dev/overrule/internal/gateway"
)

// connect routes a connection to a port, with a server name if it is one of TLS.
func (s *server) connect(at socket, name string) (gateway.Served, *endpoint, error) {
	v := s.cluster.now()
	g := v.Gateway(at.gateway.Namespace, at.gateway.Name)
	if g == nil {
		return gateway.Served{}, nil, fmt.Errorf("%s does not exist", at.gateway)
	}
	served := s.route(v, g, &gateway.Request{Transport: at.transport, Port: at.port, Host: name})
	if served.Route == nil {
		return served, nil, errors.New("no route")
	}
	r, err := ruleOf(served.Route, served.Rule)
	if err != nil {
		return served, nil, err
	}
	to := s.endpointOf(v, served, r)
	if to == nil {
		return served, nil, errors.New("no endpoint")
	}
	return served, to, nil
}

// serveTCP answers a connection as the backend would that it is routed to, and closes
// one that has no route.
func (s *server) serveTCP(c net.Conn, at socket) {
	defer c.Close()
	if at.transport == gateway.TransportTLS {
		s.serveTLS(c, at)
		return
	}
	if _, to, err := s.connect(at, ""); err == nil {
		echoTCP(c, to, nil)
	}
}

func (s *server) serveTLS(c net.Conn, at socket) {
	var to *endpoint
	passthrough := false
	secure := tls.Server(c, &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		served, reached, err := s.connect(at, hello.ServerName)
		if err != nil {
			c.Close() // an alert would not count as a rejected connection
			return nil, err
		}
		to = reached
		var certificate *tls.Certificate
		certificate, passthrough, err = s.cluster.certificate(served, reached)
		if err != nil {
			return nil, err
		}
		return &tls.Config{Certificates: []tls.Certificate{*certificate}}, nil
	}})
	if secure.HandshakeContext(context.Background()) != nil {
		return
	}
	if !passthrough {
		echoTCP(secure, to, nil)
		return
	}
	state := secure.ConnectionState()
	echoTCP(secure, to, &tcpserver.TLSAssertions{ServerName: state.ServerName, Version: tls.VersionName(state.Version), NegotiatedProtocol: state.NegotiatedProtocol})
}

// certificate returns the certificate of the listener, or if that passes TLS through, of
// the backend.
func (c *cluster) certificate(s gateway.Served, to *endpoint) (certificate *tls.Certificate, passthrough bool, err error) {
	var g gatewayv1.Gateway
	ctx := context.Background()
	if err := c.Get(ctx, client.ObjectKey{Namespace: s.Listener.Gateway.Namespace, Name: s.Listener.Gateway.Name}, &g); err != nil {
		return nil, false, err
	}
	i := slices.IndexFunc(g.Spec.Listeners, func(l gatewayv1.Listener) bool { return string(l.Name) == s.Listener.Listener.Name })
	secret := client.ObjectKey{Namespace: g.Namespace}
	switch l := g.Spec.Listeners[i].TLS; {
	case l.Mode == nil || *l.Mode == gatewayv1.TLSModeTerminate:
		secret.Name = string(l.CertificateRefs[0].Name)
	default:
		passthrough = true
		secret.Namespace = to.pod.Namespace
		for _, volume := range to.pod.Spec.Volumes {
			if volume.Secret != nil {
				secret.Name = volume.Secret.SecretName
			}
		}
	}
	var stored corev1.Secret
	if err := c.Get(ctx, secret, &stored); err != nil {
		return nil, false, err
	}
	pair, err := tls.X509KeyPair(stored.Data[corev1.TLSCertKey], stored.Data[corev1.TLSPrivateKeyKey])
	return &pair, passthrough, err
}

// echoTCP answers as the echo server of the tests. secure is nil unless the backend
// terminates TLS.
func echoTCP(c net.Conn, to *endpoint, secure *tcpserver.TLSAssertions) {
	about := tcpserver.TCPAssertions{
		Context: tcpserver.Context{Namespace: to.pod.Namespace, Service: to.service, Pod: to.pod.Name},
		IsTLS:   secure != nil, TLSAssertion: secure,
	}
	text, err := json.Marshal(about)
	if err != nil {
		return
	}
	fmt.Fprint(c, tcpserver.WelcomeMessage)
	for in := bufio.NewScanner(c); in.Scan(); {
		switch in.Text() {
		case "TEST":
			fmt.Fprintf(c, "%s\n", text)
		case "IS_TLS":
			fmt.Fprintf(c, "%t\n", about.IsTLS)
		case "PING":
			fmt.Fprintln(c, "PONG")
		}
	}
}

// serveUDP answers packets as the backends would that they are routed to.
func (s *server) serveUDP(c net.PacketConn, at socket) {
	buffer := make([]byte, 4096)
	for {
		n, from, err := c.ReadFrom(buffer)
		if err != nil {
			return // it was closed
		}
		_, to, err := s.connect(at, "")
		if err != nil {
			continue
		}
		if text, err := echoUDP(buffer[:n], to); err == nil {
			_, _ = c.WriteTo(text, from) // the client sends it again
		}
	}
}

func echoUDP(packet []byte, to *endpoint) ([]byte, error) {
	if to.service == "coredns" {
		var question dns.Msg
		if err := question.Unpack(packet); err != nil {
			return nil, err
		}
		return new(dns.Msg).SetReply(&question).Pack()
	}
	return json.Marshal(udpechoserver.EchoResponse{
		Request: string(packet),
		Context: udpechoserver.Context{Namespace: to.pod.Namespace, Service: to.service, Pod: to.pod.Name},
	})
}
