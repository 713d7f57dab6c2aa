package certs

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"overrule.dev/overrule/test/logbuffer"
)

// sharedSecrets has one Secret that replicas share, with updates as an API server does
// them. Watches report nothing, so replicas read it by polling.
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

func (s *sharedSecrets) List(context.Context, metav1.ListOptions) (*corev1.SecretList, error) {
	return &corev1.SecretList{}, nil
}

func (s *sharedSecrets) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	w := watch.NewFakeWithChanSize(1, false)
	w.Action(watch.Bookmark, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "1", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}})
	return w, nil
}

// peersOptions are lifetimes that rotate within hours.
func peersOptions(s corev1client.SecretsGetter) Options {
	return Options{Secrets: s, Namespace: "own", SecretName: "peers", CAValidity: 90 * hour, LeafValidity: 10 * hour}
}

// newTestPeers returns Peers with a certificate, and their clock.
func newTestPeers(t *testing.T, s corev1client.SecretsGetter) (*Peers, *clocktesting.FakeClock) {
	t.Helper()
	clock := clocktesting.NewFakeClock(epoch)
	opts := peersOptions(s)
	opts.Clock = clock
	p, err := NewPeers(opts)
	require.NoError(t, err)
	require.NoError(t, p.authority.sync(t.Context()))
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

func assertTalk(t *testing.T, client, server *Peers) {
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
		assert.Len(t, r.TLS.VerifiedChains, 1)
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
	ca := server.authority.lastState.current
	webhookCA := newTestSigner(t, epoch)
	leafOf := func(ca *signer, issued time.Time, usages ...x509.ExtKeyUsage) *tls.Certificate {
		l, err := issueLeaf(ca, []string{server.name}, 10*hour, issued, usages...)
		require.NoError(t, err)
		return l.tls
	}
	for name, c := range map[string]struct {
		cert *tls.Certificate
		want string
	}{
		"a certificate of a peer":              {cert: leafOf(ca, epoch, x509.ExtKeyUsageClientAuth)},
		"no certificate":                       {&tls.Certificate{}, "client didn't provide a certificate"},
		"one of another authority":             {leafOf(webhookCA, epoch, x509.ExtKeyUsageClientAuth), "certificate signed by unknown authority"},
		"the serving certificate of a webhook": {leafOf(webhookCA, epoch), "certificate signed by unknown authority"},
		"one that is not for clients":          {leafOf(ca, epoch), "incompatible key usage"},
		"one that has expired":                 {leafOf(ca, epoch.Add(-11*hour), x509.ExtKeyUsageClientAuth), "certificate has expired"},
	} {
		t.Run(name, func(t *testing.T) {
			client := &tls.Config{
				MinVersion: tls.VersionTLS13, ServerName: server.name, RootCAs: server.trusted(), Time: func() time.Time { return epoch }, NextProtos: []string{"h2"},
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
	ca := client.authority.lastState.current
	for name, c := range map[string]struct {
		ca     *signer
		name   string
		issued time.Time
		usage  x509.ExtKeyUsage
		want   string
	}{
		"a certificate of a peer":     {ca: ca, name: client.name, issued: epoch, usage: x509.ExtKeyUsageServerAuth},
		"one of another authority":    {newTestSigner(t, epoch), client.name, epoch, x509.ExtKeyUsageServerAuth, "certificate signed by unknown authority"},
		"one of another name":         {ca, "overrule.own.svc", epoch, x509.ExtKeyUsageServerAuth, "certificate is valid for overrule.own.svc, not peers.overrule.own.svc"},
		"one that is not for servers": {ca, client.name, epoch, x509.ExtKeyUsageClientAuth, "incompatible key usage"},
		"one that has expired":        {ca, client.name, epoch.Add(-11 * hour), x509.ExtKeyUsageServerAuth, "certificate has expired"},
	} {
		t.Run(name, func(t *testing.T) {
			template := leafTemplate(c.ca, []string{c.name}, 10*hour, c.issued)
			clientErr, _ := peerHandshake(t, client.ClientTLS(), &tls.Config{
				MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{signLeaf(t, c.ca, template, c.usage)}, NextProtos: []string{"h2"},
			})
			if c.want == "" {
				require.NoError(t, clientErr)
				return
			}
			require.ErrorContains(t, clientErr, c.want)
		})
	}
}

func TestPeersWithoutCertificate(t *testing.T) {
	s := &sharedSecrets{}
	ready, _ := newTestPeers(t, s)
	p, err := NewPeers(peersOptions(s))
	require.NoError(t, err)
	require.ErrorIs(t, p.Healthy(nil), ErrNotReady)
	assert.Nil(t, p.Expiries())
	assert.False(t, p.NeedLeaderElection())
	clientErr, _ := peerHandshake(t, p.ClientTLS(), ready.ServerTLS())
	require.Error(t, clientErr)
	_, serverErr := peerHandshake(t, ready.ClientTLS(), p.ServerTLS())
	require.Error(t, serverErr)
	require.NoError(t, ready.Healthy(nil))
	assert.Equal(t, map[string]time.Time{NamePeer: at(10), NamePeerAuthority: at(90)}, ready.Expiries())
}

// While an authority is replaced, replicas with a certificate of the old one and replicas
// with one of the new one talk, also those that have not read the Secret again.
func TestPeersTalkDuringRotation(t *testing.T) {
	s := &sharedSecrets{}
	a, aClock := newTestPeers(t, s)
	b, bClock := newTestPeers(t, s)
	both := func(hours float64) {
		t.Helper()
		for _, clock := range []*clocktesting.FakeClock{aClock, bClock} {
			clock.SetTime(at(hours))
		}
		assertTalk(t, a, b)
		assertTalk(t, b, a)
	}
	sync := func(p *Peers) {
		t.Helper()
		p.authority.Published(p.authority.CABundle())
		require.NoError(t, p.authority.sync(t.Context()))
	}
	issuers := func() []*x509.Certificate {
		return []*x509.Certificate{a.authority.serving.Load().issuer, b.authority.serving.Load().issuer}
	}
	for hours := 5.0; hours < 60; hours += 5 {
		both(hours)
		sync(a)
		sync(b)
	}
	old := a.authority.lastState.current.cert
	both(60)
	sync(a) // it stages the next authority
	both(60)
	sync(b)
	sync(b) // and this one has confirmed it
	sync(a)
	both(61)
	sync(a) // it is promoted
	both(67)
	sync(a)
	assert.Equal(t, []bool{false, true}, []bool{issuers()[0].Equal(old), issuers()[1].Equal(old)})
	both(69)
	sync(b)
	assert.False(t, issuers()[1].Equal(old))
	both(75)
	sync(a)
	sync(b)
	both(76)
	assert.Len(t, a.authority.lastState.trusted(), 1)
}

// Replicas that only poll the Secret talk at any time, and no one has to publish bundles.
func TestPeersRotate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, log := &sharedSecrets{}, &logbuffer.Buffer{}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		var peers []*Peers
		for range 2 {
			opts := peersOptions(s)
			opts.Log, opts.PollInterval = log.Logger(), 10*time.Minute
			p, err := NewPeers(opts)
			require.NoError(t, err)
			peers = append(peers, p)
			running.Go(func() { assert.NoError(t, p.Start(ctx)) })
			time.Sleep(7 * time.Minute) // they poll at different times
		}
		for start := time.Now(); time.Since(start) < 200*hour; time.Sleep(20 * time.Minute) {
			assertTalk(t, peers[0], peers[1])
			assertTalk(t, peers[1], peers[0])
		}
		cancel()
		running.Wait()
		for _, step := range []step{stepStaged, stepConfirmed, stepPromoted, stepDropped} {
			assert.GreaterOrEqual(t, strings.Count(log.String(), string(step)), 2, step)
		}
		assert.Equal(t, 1, strings.Count(log.String(), string(stepCreated)))
		assert.NotContains(t, log.String(), `"error"`)
	})
}

// signLeaf signs a certificate that has only one usage.
func signLeaf(t *testing.T, ca *signer, template *x509.Certificate, usage x509.ExtKeyUsage) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template.ExtKeyUsage = []x509.ExtKeyUsage{usage}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key.Public(), ca.key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
