//go:build e2e

package replicas

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"overrule.dev/overrule/test/server"
)

func (r *replicaSet) clients() *kubernetes.Clientset {
	r.t.Helper()
	out, err := kubernetes.NewForConfig(r.plane.Config)
	require.NoError(r.t, err)
	return out
}

func (r *replicaSet) lease() *coordinationv1.Lease {
	r.t.Helper()
	lease, err := r.clients().CoordinationV1().Leases(server.Namespace).Get(r.t.Context(), server.Name, metav1.GetOptions{})
	require.NoError(r.t, err)
	return lease
}

// term returns the present term, as replicas send it to each other.
func (r *replicaSet) term() string {
	lease := r.lease()
	return fmt.Sprintf("%s/%d/%s", lease.UID, *lease.Spec.LeaseTransitions, *lease.Spec.HolderIdentity)
}

// certificate returns a client certificate of a name, signed by the authority of the
// replicas.
func (r *replicaSet) certificate(name string) tls.Certificate {
	r.t.Helper()
	stored, err := r.clients().CoreV1().Secrets(server.Namespace).Get(r.t.Context(), "overrule-ca", metav1.GetOptions{})
	require.NoError(r.t, err)
	authority, err := tls.X509KeyPair(stored.Data["tls.crt"], stored.Data["tls.key"])
	require.NoError(r.t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: authority.Leaf.NotBefore, NotAfter: authority.Leaf.NotAfter,
		DNSNames:    []string{name},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, authority.Leaf, authority.PrivateKey.(crypto.Signer).Public(), authority.PrivateKey)
	require.NoError(r.t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: authority.PrivateKey}
}

// forward forwards the review of a route to a replica, and returns the status and the
// body of the response.
func forward(ctx context.Context, address, term string, certificates ...tls.Certificate) (int, string, error) {
	const review = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","namespace":"default","name":"r",
		"kind":{"group":"gateway.networking.k8s.io","version":"v1","kind":"HTTPRoute"},"userInfo":{"username":"user"},
		"object":{"apiVersion":"gateway.networking.k8s.io/v1","kind":"HTTPRoute","metadata":{"namespace":"default","name":"r","uid":"u"},"spec":{}}}}`
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: certificates}}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+address+"/v1/validate?timeout=3s", strings.NewReader(review))
	if err != nil {
		return 0, "", err
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "Overrule-Term": {term}, "Overrule-Remaining": {"2000"}}
	response, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

// Only replicas can forward reviews, and only in the present term.
func TestOnlyReplicasForward(t *testing.T) {
	r := newReplicaSet(t, 1)
	address, term := r.leader().peerBind, r.term()
	_, _, err := forward(t.Context(), address, term)
	assert.Error(t, err, "without a certificate")
	_, _, err = forward(t.Context(), address, term, r.certificate("overrule.overrule-system.svc"))
	assert.Error(t, err, "with the name of the webhook")

	replica := r.certificate("peers.overrule.overrule-system.svc")
	code, text, err := forward(t.Context(), address, term, replica)
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, code)
	assert.Contains(t, text, `"allowed":true`)
	code, _, err = forward(t.Context(), address, "00000000-0000-4000-8000-000000000000/1/other", replica)
	require.NoError(t, err)
	assert.Equal(t, http.StatusMisdirectedRequest, code)
}
