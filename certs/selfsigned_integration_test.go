//go:build integration

package certs

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestConcurrentReplicasAgreeOnOneAuthority(t *testing.T) {
	f := newTestReplicas(t)
	const replicas = 5
	for range replicas {
		f.start()
	}
	f.eventually(func() error { return f.allVerify(f.replicas[0].CABundle()) })
	for _, replica := range f.replicas[1:] {
		assert.Equal(t, f.replicas[0].CABundle(), replica.CABundle())
		assert.NotEqual(t, f.replicas[0].serving.Load().tls.Certificate, replica.serving.Load().tls.Certificate,
			"each has a key of its own")
	}
	secret := f.secret()
	assert.Equal(t, corev1.SecretTypeTLS, secret.Type)
	assert.Equal(t, f.replicas[0].CABundle(), secret.Data[keyBundle])
	s, err := decode(secret)
	require.NoError(t, err)
	assert.Len(t, s.trusted(), 1)
}

func TestRotationFailsNoHandshake(t *testing.T) {
	f := newTestReplicas(t)
	f.start()
	f.start()
	f.eventually(func() error { return f.allVerify(f.replicas[0].CABundle()) })
	stop := f.publishFrom(f.replicas[0])
	f.eventually(func() error { return f.allVerify(f.clientBundle()) })

	load := f.handshakeContinuously()
	authorities, leaves := map[string]bool{}, map[string]bool{}
	for range 400 { // 200 hours: two lifetimes of an authority, twenty of a leaf
		f.clock.Step(30 * time.Minute)
		f.waitSettled()
		for _, replica := range f.replicas {
			leaves[string(replica.serving.Load().tls.Leaf.Raw)] = true
			authorities[string(replica.serving.Load().issuer.Raw)] = true
		}
	}
	shakes, failures := load()
	stop()

	assert.Empty(t, failures)
	assert.Greater(t, shakes, 100)
	assert.GreaterOrEqual(t, len(authorities), 3, "authorities that signed")
	assert.GreaterOrEqual(t, len(leaves), 40, "certificates served")
}

func TestOldBundleVerifiesUntilPromotion(t *testing.T) {
	f := newTestReplicas(t)
	f.start()
	f.start()
	f.eventually(func() error { return f.allVerify(f.replicas[0].CABundle()) })
	old := f.replicas[0].CABundle()

	f.clock.SetTime(at(60))
	f.eventually(func() error { return f.checkBundles(2) })
	both := f.replicas[0].CABundle()
	f.waitSettled()
	require.NoError(t, f.allVerify(old), "staged alone changes nothing that is served")

	f.replicas[1].Published(both)
	f.eventually(func() error { return f.checkAnnotation(annotationPublishedAt) })
	require.NoError(t, f.allVerify(old), "published, but not propagated yet")

	f.clock.Step(2 * hour)
	f.eventually(func() error {
		if s := f.stored(); s.next != nil || len(s.retired) != 1 {
			return errors.New("not promoted yet")
		}
		return f.checkBundles(2)
	})
	require.NoError(t, f.allVerify(both))
	f.clock.Step(10 * hour)
	f.eventually(func() error { return f.allVerify(onlyFirst(f.stored().bundle())) })
	require.NoError(t, f.allVerify(both))
	f.clock.Step(4 * hour)
	f.eventually(func() error { return f.checkBundles(1) })
	require.NoError(t, f.allVerify(f.replicas[0].CABundle()))
	require.Error(t, f.allVerify(old))
}

func TestDeletedSecretIsRestoredAndAuthorityRotated(t *testing.T) {
	f := newTestReplicas(t)
	f.start()
	f.start()
	f.eventually(func() error { return f.allVerify(f.replicas[0].CABundle()) })
	old := f.replicas[0].CABundle()

	require.NoError(t, f.client.CoreV1().Secrets(f.namespace).Delete(t.Context(), secretName, metav1.DeleteOptions{}))
	f.eventually(func() error { return f.checkBundles(2) })
	require.NoError(t, f.allVerify(old), "clients have no other bundle yet")
	assert.True(t, bytes.HasPrefix(f.secret().Data[keyBundle], old))
}

func TestInvalidSecretIsRepaired(t *testing.T) {
	for name, damage := range map[string]func(*corev1.Secret){
		"a broken certificate":         func(s *corev1.Secret) { s.Data[keyCert] = []byte("x") },
		"a key of another certificate": func(s *corev1.Secret) { s.Data[keyKey] = newTestSigner(t, epoch).keyPEM },
		"emptied":                      func(s *corev1.Secret) { s.Data = map[string][]byte{keyCert: {}, keyKey: {}} },
	} {
		t.Run(name, func(t *testing.T) {
			f := newTestReplicas(t)
			f.start()
			f.start()
			f.eventually(func() error { return f.allVerify(f.replicas[0].CABundle()) })
			old := f.replicas[0].CABundle()

			secret := f.secret()
			damage(secret)
			secret.Labels = map[string]string{"theirs": "stays"}
			_, err := f.client.CoreV1().Secrets(f.namespace).Update(t.Context(), secret, metav1.UpdateOptions{})
			require.NoError(t, err)
			f.eventually(func() error { return f.checkBundles(2) })
			require.NoError(t, f.allVerify(old))
			repaired := f.secret()
			_, err = decode(repaired)
			require.NoError(t, err)
			assert.Equal(t, "stays", repaired.Labels["theirs"])
		})
	}
}

func TestInvalidSecretIsReplacedByStartingReplica(t *testing.T) {
	f := newTestReplicas(t)
	_, err := f.client.CoreV1().Secrets(f.namespace).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: secretName},
		Type:       corev1.SecretTypeTLS,
		Data:       map[string][]byte{keyCert: []byte("x"), keyKey: []byte("y")},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	f.start()
	f.eventually(func() error { return f.allVerify(f.replicas[0].CABundle()) })
	assert.Equal(t, f.replicas[0].CABundle(), f.secret().Data[keyBundle])
}

func TestAuthorityStartedBeforeItsAPIServer(t *testing.T) {
	f := newTestReplicas(t)
	gate := &outage{}
	gate.set(true)
	config := rest.CopyConfig(f.config)
	config.Wrap(gate.wrap)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	replica := f.startWith(client.CoreV1(), nil)
	f.eventually(func() error {
		if err := replica.Healthy(nil); !errors.Is(err, errOutage) {
			return fmt.Errorf("want a reason why it is not ready, got: %w", cmp.Or(err, errNone))
		}
		return nil
	})
	gate.set(false)
	f.eventually(func() error { return f.allVerify(replica.CABundle()) })

	gate.set(true)
	require.NoError(t, replica.Healthy(nil), "unreachable again: the served certificate stays valid")
}

func TestMissingNamespaceIsReportedAndRetried(t *testing.T) {
	f := newTestReplicas(t)
	f.namespace += "-later"
	replica := f.startWith(f.client.CoreV1(), nil)
	f.eventually(func() error {
		if err := replica.Healthy(nil); err == nil || !bytes.Contains([]byte(err.Error()), []byte(f.namespace+"\" not found")) {
			return fmt.Errorf("want the namespace named, got: %w", cmp.Or(err, errNone))
		}
		return nil
	})
	f.makeNamespace()
	f.eventually(func() error { return replica.Healthy(nil) })
}

// outage makes the API server unreachable for a client.
type outage struct {
	mu     sync.Mutex
	closed bool
}

var (
	errOutage = errors.New("the API server is unreachable")
	errNone   = errors.New("no error")
)

func (g *outage) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = shut
}

func (g *outage) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		g.mu.Lock()
		closed := g.closed
		g.mu.Unlock()
		if closed {
			return nil, errOutage
		}
		return next.RoundTrip(r)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func onlyFirst(bundle []byte) []byte {
	certs, err := parseBundle(bundle)
	if err != nil {
		return nil
	}
	return encodeCertificates(certs[0].Raw)
}

// dial makes one handshake like an API server: with a name of the Service, and
// trusting only the bundle.
func dial(address string, bundle []byte, clock *clocktesting.FakeClock) error {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(bundle)
	conn, err := tls.Dial("tcp", address, &tls.Config{
		MinVersion: tls.VersionTLS13, RootCAs: pool, ServerName: "overrule.own.svc", Time: clock.Now,
	})
	if err != nil {
		return err
	}
	return conn.Close()
}
