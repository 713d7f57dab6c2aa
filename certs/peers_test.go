package certs

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
)

// sharedSecrets has one Secret that replicas share, with updates as an API server does
// them.
type sharedSecrets struct {
	corev1client.SecretInterface
	mu     sync.Mutex
	stored *corev1.Secret
}

func (s *sharedSecrets) Secrets(string) corev1client.SecretInterface { return s }

func (s *sharedSecrets) Get(context.Context, string, metav1.GetOptions) (*corev1.Secret, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stored == nil {
		return nil, apierrors.NewNotFound(secrets, "peers")
	}
	return s.stored.DeepCopy(), nil
}

func (s *sharedSecrets) Create(_ context.Context, secret *corev1.Secret, _ metav1.CreateOptions) (*corev1.Secret, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stored != nil {
		return nil, apierrors.NewAlreadyExists(secrets, secret.Name)
	}
	return s.store(secret), nil
}

func (s *sharedSecrets) Update(_ context.Context, secret *corev1.Secret, _ metav1.UpdateOptions) (*corev1.Secret, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stored == nil || s.stored.ResourceVersion != secret.ResourceVersion {
		return nil, apierrors.NewConflict(secrets, secret.Name, errors.New("changed"))
	}
	return s.store(secret), nil
}

func (s *sharedSecrets) store(secret *corev1.Secret) *corev1.Secret {
	s.stored = secret.DeepCopy()
	s.stored.ResourceVersion += "1"
	return s.stored.DeepCopy()
}

// peersOptions are lifetimes that rotate within hours.
func peersOptions(s corev1client.SecretsGetter) Options {
	return Options{Secrets: s, Namespace: "own", SecretName: "peers", CAValidity: 90 * hour, LeafValidity: 10 * hour}
}

// newTestPeers returns Peers with a certificate, and their clock.
func newTestPeers(t *testing.T, s corev1client.SecretsGetter) (*Authority, *clocktesting.FakeClock) {
	t.Helper()
	clock := clocktesting.NewFakeClock(epoch)
	opts := peersOptions(s)
	opts.Clock = clock
	p := New(opts)
	require.NoError(t, p.sync(t.Context()))
	return p, clock
}

// peerHandshake makes a client call a server, and returns the error of each.
func peerHandshake(t *testing.T, client, server *tls.Config) (clientErr, serverErr error) {
	t.Helper()
	a, b := connect(t)
	var serving sync.WaitGroup
	serving.Go(func() {
		defer b.Close()
		c := tls.Server(b, server)
		if serverErr = c.Handshake(); serverErr == nil {
			_, serverErr = c.Write([]byte{1})
		}
	})
	c := tls.Client(a, client)
	if clientErr = c.Handshake(); clientErr == nil {
		_, clientErr = c.Read(make([]byte, 1)) // in TLS 1.3, the server verifies after the client
	}
	_ = a.Close()
	serving.Wait()
	return clientErr, serverErr
}

// connect returns both ends of a connection.
func connect(t *testing.T) (client, server net.Conn) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	client, err = new(net.Dialer).DialContext(t.Context(), "tcp", listener.Addr().String())
	require.NoError(t, err)
	server, err = listener.Accept()
	require.NoError(t, err)
	return client, server
}

func assertTalk(t *testing.T, client, server *Authority) {
	t.Helper()
	clientErr, serverErr := peerHandshake(t, client.ClientTLS(), server.ServerTLS())
	require.NoError(t, clientErr)
	require.NoError(t, serverErr)
}

func TestPeersTalkHTTP2(t *testing.T) {
	s := &sharedSecrets{}
	a, _ := newTestPeers(t, s)
	b, _ := newTestPeers(t, s)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.EqualValues(t, tls.VersionTLS13, r.TLS.Version)
		_, _ = w.Write([]byte(r.Proto))
	}))
	server.EnableHTTP2, server.TLS = true, a.ServerTLS()
	server.StartTLS()
	defer server.Close()
	transport := &http.Transport{TLSClientConfig: b.ClientTLS(), ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	require.NoError(t, err)
	response, err := transport.RoundTrip(request)
	require.NoError(t, err)
	defer response.Body.Close()
	assert.Equal(t, "HTTP/2.0", response.Proto)
}

func TestPeersServerRefuses(t *testing.T) {
	s := &sharedSecrets{}
	server, _ := newTestPeers(t, s)
	ca := server.lastState.current
	leafOf := func(ca *signer, name string, issued time.Time, usages ...x509.ExtKeyUsage) *tls.Certificate {
		l, err := issueLeaf(ca, &identity{names: []string{name}, usages: usages}, 10*hour, issued)
		require.NoError(t, err)
		return l.tls
	}
	name, client := server.peer.names[0], x509.ExtKeyUsageClientAuth
	for name, c := range map[string]struct {
		cert *tls.Certificate
		want string
	}{
		"a certificate of a peer":              {cert: leafOf(ca, name, epoch, client)},
		"no certificate":                       {&tls.Certificate{}, "client didn't provide a certificate"},
		"one of another authority":             {leafOf(newTestSigner(t, epoch), name, epoch, client), "certificate signed by unknown authority"},
		"the serving certificate of a webhook": {leafOf(ca, "overrule.own.svc", epoch, x509.ExtKeyUsageServerAuth), "not " + name},
		"one of another name":                  {leafOf(ca, "overrule.own.svc", epoch, client), "not " + name},
		"one that is not for clients":          {leafOf(ca, name, epoch, x509.ExtKeyUsageServerAuth), "incompatible key usage"},
		"one that has expired":                 {leafOf(ca, name, epoch.Add(-11*hour), client), "is valid from 2025-12-31T21:00:00Z to 2025-12-31T23:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			client := &tls.Config{
				MinVersion: tls.VersionTLS13, ServerName: server.peer.names[0], RootCAs: poolOf(server.lastState.trusted()), Time: func() time.Time { return epoch }, NextProtos: []string{"h2"},
				GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.cert, nil },
			}
			clientErr, serverErr := peerHandshake(t, client, server.ServerTLS())
			if c.want == "" {
				require.NoError(t, errors.Join(clientErr, serverErr))
				return
			}
			require.ErrorContains(t, serverErr, c.want)
			require.Error(t, clientErr)
		})
	}
}

func TestPeersClientRefuses(t *testing.T) {
	client, _ := newTestPeers(t, &sharedSecrets{})
	ca := client.lastState.current
	for name, c := range map[string]struct {
		ca     *signer
		name   string
		issued time.Time
		usage  x509.ExtKeyUsage
		want   string
	}{
		"a certificate of a peer":     {ca: ca, name: client.peer.names[0], issued: epoch, usage: x509.ExtKeyUsageServerAuth},
		"one of another authority":    {newTestSigner(t, epoch), client.peer.names[0], epoch, x509.ExtKeyUsageServerAuth, "certificate signed by unknown authority"},
		"one of another name":         {ca, "overrule.own.svc", epoch, x509.ExtKeyUsageServerAuth, "certificate is valid for overrule.own.svc, not peers.overrule.own.svc"},
		"one that is not for servers": {ca, client.peer.names[0], epoch, x509.ExtKeyUsageClientAuth, "incompatible key usage"},
		"one that has expired":        {ca, client.peer.names[0], epoch.Add(-11 * hour), x509.ExtKeyUsageServerAuth, "is valid from"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := issueLeaf(c.ca, &identity{names: []string{c.name}, usages: []x509.ExtKeyUsage{c.usage}}, 10*hour, c.issued)
			require.NoError(t, err)
			clientErr, _ := peerHandshake(t, client.ClientTLS(), &tls.Config{
				MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{*l.tls}, NextProtos: []string{"h2"},
			})
			if c.want == "" {
				require.NoError(t, clientErr)
				return
			}
			require.ErrorContains(t, clientErr, c.want)
		})
	}
}
