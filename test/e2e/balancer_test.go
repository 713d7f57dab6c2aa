//go:build e2e

package e2e

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"overrule.dev/overrule/test/server"
)

// balancer distributes calls to replicas by the user who writes: the API server
// keeps connections open, so a proxy of connections could not choose. It serves
// TLS with a certificate that the servers' authority signs.
type balancer struct {
	listener  net.Listener
	transport *http.Transport

	mu       sync.Mutex
	backends []string          // of users without a backend of their own, in turn
	users    map[string]string // backends by user
	next     int
	open     map[string]int             // calls in flight, by backend
	seen     map[string]map[string]bool // objects of calls of /validate, by backend
}

func newBalancer(t *testing.T, c *cluster) *balancer {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	b := &balancer{
		listener:  listener,
		transport: &http.Transport{MaxIdleConnsPerHost: 100, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
		users:     map[string]string{}, open: map[string]int{}, seen: map[string]map[string]bool{},
	}
	service := &http.Server{
		Handler:           b,
		TLSConfig:         &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.serving(t) }},
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	go func() { _ = service.ServeTLS(listener, "", "") }()
	t.Cleanup(func() { _ = service.Close() })
	return b
}

// flag returns the server's flag for the port of the balancer.
func (b *balancer) flag() string {
	return "--service-port=" + strconv.Itoa(b.listener.Addr().(*net.TCPAddr).Port)
}

// setBackends sets the backends of calls in turn.
func (b *balancer) setBackends(servers ...*server.Server) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.transport.CloseIdleConnections() // those of a server that will stop
	b.backends = nil
	for _, s := range servers {
		b.backends = append(b.backends, s.Webhook)
	}
}

// route sets the backend of a user's calls.
func (b *balancer) route(user string, s *server.Server) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.users[user] = s.Webhook
}

// objects returns the objects whose writes a server was asked about.
func (b *balancer) objects(s *server.Server) map[string]bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.seen[s.Webhook]
}

// inFlight returns the number of calls that a server has not answered.
func (b *balancer) inFlight(s *server.Server) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open[s.Webhook]
}

// ServeHTTP forwards one call. If the server breaks the connection, so does the
// balancer.
func (b *balancer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var review admissionv1.AdmissionReview
	if err != nil || json.Unmarshal(body, &review) != nil || review.Request == nil {
		review.Request = &admissionv1.AdmissionRequest{}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	backend, done := b.choose(review.Request, strings.HasPrefix(r.URL.Path, "/validate"))
	defer done()
	proxy := &httputil.ReverseProxy{
		Transport:    b.transport,
		Rewrite:      func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "https", backend },
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	proxy.ServeHTTP(w, r)
}

// choose returns the backend of a call, and records its object.
func (b *balancer) choose(r *admissionv1.AdmissionRequest, validate bool) (backend string, done func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	backend, ok := b.users[r.UserInfo.Username]
	switch {
	case !ok && len(b.backends) > 0:
		b.next++
		backend = b.backends[b.next%len(b.backends)]
	case ok && validate && (r.DryRun == nil || !*r.DryRun):
		if b.seen[backend] == nil {
			b.seen[backend] = map[string]bool{}
		}
		b.seen[backend][reviewed(r)] = true
	}
	b.open[backend]++
	return backend, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.open[backend]--
	}
}

// reviewed names the object of a request: kind, namespace and name.
func reviewed(r *admissionv1.AdmissionRequest) string {
	namespace := r.Namespace
	if r.Kind.Kind == "Namespace" { // its own name
		namespace = ""
	}
	return strings.Join([]string{r.Kind.Kind, namespace, r.Name}, " ")
}

// serving returns a certificate of the Service, signed by the authority of the
// servers.
func (c *cluster) serving(t *testing.T) (*tls.Certificate, error) {
	clients, err := kubernetes.NewForConfig(c.Config)
	if err != nil {
		return nil, err
	}
	secret, err := clients.CoreV1().Secrets(server.Namespace).Get(t.Context(), "overrule-ca", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	authority, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
	if err != nil {
		return nil, err
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: authority.Leaf.NotBefore, NotAfter: authority.Leaf.NotAfter,
		DNSNames: []string{server.Name + "." + server.Namespace + ".svc"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	key := authority.PrivateKey.(crypto.Signer)
	der, err := x509.CreateCertificate(rand.Reader, leaf, authority.Leaf, key.Public(), authority.PrivateKey)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: authority.PrivateKey}, nil
}
