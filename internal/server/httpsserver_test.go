package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/webhook"
)

// testSource is a Source with a fixed certificate.
type testSource struct {
	pair tls.Certificate
	ca   []byte
}

func newTestSource(t *testing.T) *testSource {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	require.NoError(t, err)
	pair, err := tls.X509KeyPair(certificate, key)
	require.NoError(t, err)
	return &testSource{pair, certificate}
}

func (g *testSource) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return &g.pair, nil
}
func (g *testSource) CABundle() []byte               { return g.ca }
func (g *testSource) Changed() <-chan struct{}       { return nil }
func (g *testSource) Published([]byte)               {}
func (g *testSource) Healthy(*http.Request) error    { return nil }
func (g *testSource) Expiries() map[string]time.Time { return nil }

// client returns a client that trusts the source, and keeps its connections.
func (g *testSource) client() *http.Client {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(g.ca)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}}}
}

// testRunnable is a Runnable that reports its end.
type testRunnable struct {
	fail  error
	ended atomic.Bool
}

func (f *testRunnable) Start(ctx context.Context) error {
	if f.fail != nil {
		return f.fail
	}
	<-ctx.Done()
	f.ended.Store(true)
	return nil
}

// startServer starts a server on a free port. It ends when shutdown is called.
func startServer(t *testing.T, d *httpsServer) (url string, shutdown context.CancelFunc, ended <-chan error) {
	t.Helper()
	address := make(chan string, 1)
	d.log = funcr.New(func(_, args string) {
		if _, rest, ok := strings.Cut(args, `"msg"="serving" "address"="`); ok {
			address <- strings.TrimSuffix(rest, `"`)
		}
	}, funcr.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	done := make(chan error, 1)
	go func() { done <- d.Start(ctx) }()
	select {
	case a := <-address:
		return "https://" + a, cancel, done
	case err := <-done:
		require.NoError(t, err)
		return "", nil, nil
	}
}

func newTestWebhooks() *webhook.Server {
	return webhook.New(webhook.Options{Store: snapshot.New(), Guard: &guard.Guard{Engine: effective.NewEngine()}, Log: logr.Discard()})
}

func TestDrainingServerRespondsAndIsNotReady(t *testing.T) {
	certificates, f := newTestSource(t), &testRunnable{}
	var serving sync.WaitGroup
	d := &httpsServer{
		address: "127.0.0.1:0", connections: 10, drainPeriod: 300 * time.Millisecond, webhooks: newTestWebhooks(), certificates: certificates,
		runnables: []manager.Runnable{f}, serving: &serving,
	}
	url, shutdown, ended := startServer(t, d)
	served := make(chan struct{})
	go func() {
		serving.Wait()
		close(served)
	}()
	client := certificates.client()
	get := func() (*http.Response, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+webhook.PathValidate, strings.NewReader(
			`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","kind":{"version":"v1","kind":"Pod"},"operation":"CREATE","object":{}}}`))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		response, err := client.Do(r)
		if err == nil {
			_ = response.Body.Close()
		}
		return response, err
	}
	require.NoError(t, d.checkShutdown(nil))
	response, err := get() //nolint:bodyclose // ask closes it
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, response.StatusCode)
	assert.False(t, response.Close)

	shutdown()
	require.Eventually(t, func() bool { return d.checkShutdown(nil) != nil }, time.Minute, time.Millisecond)
	assert.EqualError(t, d.checkShutdown(nil), "draining")
	response, err = get() //nolint:bodyclose // ask closes it
	require.NoError(t, err, "a draining server responds")
	assert.Equal(t, http.StatusOK, response.StatusCode)
	assert.True(t, response.Close, "and the client has to reconnect")
	assert.False(t, f.ended.Load(), "its runnables are still running")
	select {
	case <-served:
		t.Error("serving was released before the last response")
	default:
	}

	<-served
	require.NoError(t, <-ended)
	assert.True(t, f.ended.Load())
	_, err = get() //nolint:bodyclose // ask closes it
	assert.Error(t, err)
	assert.False(t, d.NeedLeaderElection(), "every replica serves")
}

func TestServerEndsIfARunnableFails(t *testing.T) {
	d := &httpsServer{address: "127.0.0.1:0", connections: 10, drainPeriod: time.Hour, webhooks: newTestWebhooks(), certificates: newTestSource(t), runnables: []manager.Runnable{
		&testRunnable{fail: errors.New("the cluster is unreachable")},
	}}
	assert.EqualError(t, d.Start(t.Context()), "the cluster is unreachable")
}

func TestConnectionsOverTheLimitWait(t *testing.T) {
	certificates := newTestSource(t)
	d := &httpsServer{address: "127.0.0.1:0", connections: 2, webhooks: newTestWebhooks(), certificates: certificates}
	url, shutdown, ended := startServer(t, d)
	dialer := tls.Dialer{Config: certificates.client().Transport.(*http.Transport).TLSClientConfig}
	dial := func() (net.Conn, error) {
		c, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "https://"))
		if err != nil {
			return nil, err
		}
		if _, err := io.WriteString(c, "GET /validate HTTP/1.1\r\nHost: here\r\n\r\n"); err != nil {
			return nil, err
		}
		_, err = c.Read(make([]byte, 1)) // the response starts: the connection is accepted
		return c, err
	}
	first, err := dial()
	require.NoError(t, err)
	second, err := dial()
	require.NoError(t, err)
	defer func() { _ = second.Close() }()

	third := make(chan error, 1)
	go func() {
		c, err := dial()
		if err == nil {
			_ = c.Close()
		}
		third <- err
	}()
	select {
	case err := <-third:
		t.Fatal("a third one was accepted:", err)
	case <-time.After(100 * time.Millisecond): // time in which it would be accepted
	}
	require.NoError(t, first.Close())
	require.NoError(t, <-third, "it waited for another one to close")
	require.NoError(t, second.Close())
	shutdown()
	require.NoError(t, <-ended)
}

func TestServerReportsThatItsPortIsInUse(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	d := &httpsServer{address: listener.Addr().String(), connections: 10, webhooks: newTestWebhooks(), certificates: newTestSource(t)}
	assert.ErrorContains(t, d.Start(t.Context()), "listen for admission reviews: listen tcp "+listener.Addr().String())
}

func TestConnectionErrorsAreLoggedAtDebugLevel(t *testing.T) {
	var lines []string
	log := funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{Verbosity: 1})
	errorLog(log).Print("TLS handshake error")
	require.Len(t, lines, 1)
	assert.Contains(t, lines[0], `"level"=1 "msg"="connection error" "err"="TLS handshake error`)
}
