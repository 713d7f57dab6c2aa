//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"overrule.dev/overrule/test/server"
	"overrule.dev/overrule/webhook"
)

// authority returns the certificate and key of an authority in a Secret.
func (c *cluster) authority(t *testing.T, secret string) tls.Certificate {
	t.Helper()
	clients, err := kubernetes.NewForConfig(c.Config)
	require.NoError(t, err)
	stored, err := clients.CoreV1().Secrets(server.Namespace).Get(t.Context(), secret, metav1.GetOptions{})
	require.NoError(t, err)
	pair, err := tls.X509KeyPair(stored.Data["tls.crt"], stored.Data["tls.key"])
	require.NoError(t, err)
	return pair
}

// lookalike returns an authority with the same subject and another key.
func lookalike(t *testing.T, of tls.Certificate) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := *of.Leaf
	template.PublicKey, template.SignatureAlgorithm = nil, x509.UnknownSignatureAlgorithm
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// sign returns a client certificate with the names of a replica.
func sign(t *testing.T, authority tls.Certificate) tls.Certificate {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: authority.Leaf.NotBefore, NotAfter: authority.Leaf.NotAfter,
		DNSNames:    []string{peerName},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, authority.Leaf, authority.PrivateKey.(crypto.Signer).Public(), authority.PrivateKey)
	require.NoError(t, err)
	leaf, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: authority.PrivateKey, Leaf: leaf}
}

const (
	// peerSecret has the authority of the replicas, peerName is the name in their
	// certificates.
	peerSecret = "overrule-peers"
	peerName   = "peers.overrule.overrule-system.svc"
	// forwardPath is where replicas receive reviews.
	forwardPath = "/v1/validate?timeout=3s"
)

// postToPeer posts a body to the port between replicas, and returns the code and
// the body of the response.
func postToPeer(ctx context.Context, address, term string, body io.Reader, certificates ...tls.Certificate) (int, string, error) {
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: certificates}}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+address+forwardPath, body)
	if err != nil {
		return 0, "", err
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "Overrule-Term": {term}, "Overrule-Remaining": {"2000"}}
	response, err := (&http.Client{Transport: transport, Timeout: 20 * time.Second}).Do(r)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// forwarded is the review of a route in a namespace, as a replica forwards it.
func forwarded(namespace string) string {
	return strings.ReplaceAll(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","namespace":"NS","name":"r",
		"kind":{"group":"gateway.networking.k8s.io","version":"v1","kind":"HTTPRoute"},"userInfo":{"username":"user"},
		"object":{"apiVersion":"gateway.networking.k8s.io/v1","kind":"HTTPRoute","metadata":{"namespace":"NS","name":"r","uid":"u"},"spec":{}}}}`, "NS", namespace)
}

// Only replicas can forward reviews, and only complete ones of the present term.
func TestForwardsOfOthers(t *testing.T) {
	c := shared(t)
	g := c.prepare(t, "forwards")
	r := newReplicaSet(t, c, 1, localhost)
	address, term := r.leader().peerBind, r.term()
	peers := c.authority(t, peerSecret)
	replica := sign(t, peers)
	review := forwarded(g.app)
	for name, certificates := range map[string][]tls.Certificate{
		"without a certificate":             nil,
		"a certificate of the serving CA":   {sign(t, c.authority(t, "overrule-ca"))},
		"a certificate of a CA like theirs": {sign(t, lookalike(t, peers))},
		"a certificate that signed itself":  {lookalike(t, replica)},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := postToPeer(t.Context(), address, term, strings.NewReader(review), certificates...)
			assert.Error(t, err) // of TLS: there is no response
		})
	}
	for name, request := range map[string]struct {
		term string
		body io.Reader
		want int
	}{
		"a replica":      {term, strings.NewReader(review), http.StatusOK},
		"an old term":    {"00000000-0000-4000-8000-000000000000/1/other", strings.NewReader(review), http.StatusMisdirectedRequest},
		"no term":        {"", strings.NewReader(review), http.StatusMisdirectedRequest},
		"a cut body":     {term, strings.NewReader(review[:len(review)/2]), http.StatusOK},
		"an empty body":  {term, strings.NewReader(""), http.StatusBadRequest},
		"too large body": {term, bytes.NewReader(bytes.Repeat([]byte(" "), webhook.DefaultBodyLimit+1)), http.StatusRequestEntityTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			code, text, err := postToPeer(t.Context(), address, request.term, request.body, replica)
			require.NoError(t, err)
			assert.Equal(t, request.want, code, text)
			assert.Equal(t, name == "a replica", strings.Contains(text, `"allowed":true`), text)
		})
	}
}

// term returns the present term, as the Lease has it.
func (r *replicaSet) term() string {
	r.t.Helper()
	lease, err := r.leases().Get(r.t.Context(), server.Name, metav1.GetOptions{})
	require.NoError(r.t, err)
	return termOf(lease)
}

// Replicas forward to a leader with an IPv6 address.
func TestReplicasOverIPv6(t *testing.T) {
	c := shared(t)
	p := c.preparePairs(t, "ipv6", fewPairs, twoWay(pairSorts())...)
	r := newReplicaSet(t, c, 2, "::1")
	got := p.writePairs(r.clients())
	got.log(t, "2 replicas, IPv6")
	assert.Empty(t, got.failures)
	assert.Empty(t, got.slips, "pairs of which both passed")
	follower := r.except(r.leader())[0]
	assert.Positive(t, metric(t, follower.Server, "overrule_forwarded_total", `result="answered"`))
	assert.Zero(t, metric(t, follower.Server, "overrule_forwarded_total", `result="failed"`))
}
