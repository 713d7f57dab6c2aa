//go:build integration

package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"overrule.dev/overrule/test/env"
)

const secretName = "overrule-ca"

var apiServer *rest.Config

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	plane, err := env.Boot(context.Background(), env.WithoutCRDs())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	apiServer = plane.Config
	code := m.Run()
	if err := plane.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// testReplicas are the replicas of one server, in their own namespace on a real API
// server, each with a real listener and a fake clock.
type testReplicas struct {
	t         *testing.T
	config    *rest.Config
	client    kubernetes.Interface
	namespace string
	clock     *clocktesting.FakeClock
	replicas  []*Authority
	addresses []string
	trusted   atomic.Pointer[[]byte] // what clients trust
	log       logr.Logger
}

// newTestReplicas makes the test parallel.
func newTestReplicas(t *testing.T) *testReplicas {
	t.Helper()
	t.Parallel()
	f := &testReplicas{t: t, config: rest.CopyConfig(apiServer), clock: clocktesting.NewFakeClock(epoch), log: testr.New(t)}
	f.config.QPS = -1
	client, err := kubernetes.NewForConfig(f.config)
	require.NoError(t, err)
	f.client = client
	f.namespace = fmt.Sprintf("certs-%d", time.Now().UnixNano())
	f.makeNamespace()
	return f
}

func (f *testReplicas) makeNamespace() {
	f.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}}
	_, err := f.client.CoreV1().Namespaces().Create(f.t.Context(), namespace, metav1.CreateOptions{})
	require.NoError(f.t, err)
}

func (f *testReplicas) start() { f.startWith(f.client.CoreV1(), f.clock) }

// startWith runs a replica until the test ends; a nil clock is the real one.
func (f *testReplicas) startWith(secrets corev1client.SecretsGetter, clock clock.Clock) *Authority {
	f.t.Helper()
	opts := Options{
		Secrets: secrets, Namespace: f.namespace, SecretName: secretName, Names: ServiceNames("overrule", "own"),
		CAValidity: 90 * hour, LeafValidity: 10 * hour, PropagationDelay: hour, PollInterval: hour,
		Clock: clock, Log: f.log,
	}
	if clock == nil { // the real time is not epoch
		f.clock.SetTime(time.Now())
	}
	authority, err := New(opts)
	require.NoError(f.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { assert.NoError(f.t, authority.Start(ctx)) })
	f.t.Cleanup(func() { cancel(); running.Wait() })
	f.replicas = append(f.replicas, authority)
	f.listen(authority)
	return authority
}

func (f *testReplicas) listen(authority *Authority) {
	config := TLSConfig(authority)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	require.NoError(f.t, err)
	f.t.Cleanup(func() { _ = listener.Close() })
	f.addresses = append(f.addresses, listener.Addr().String())
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go handshake(conn)
		}
	}()
}

func handshake(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	if secure, ok := conn.(*tls.Conn); ok && secure.Handshake() == nil {
		_, _ = secure.Read(make([]byte, 1)) // until the client closes
	}
}

// eventually waits until check succeeds. A timer that is set while the fake clock is
// moved fires too late, so replicas are woken up periodically.
func (f *testReplicas) eventually(check func() error) {
	f.t.Helper()
	var err error
	checks := 0
	satisfied := func() bool {
		if checks++; checks%10 == 0 {
			f.wakeUp()
		}
		err = check()
		return err == nil
	}
	ok := assert.Eventually(f.t, satisfied, env.Patience, 10*time.Millisecond)
	require.True(f.t, ok, "still: %v", err)
}

// allVerify makes a handshake with each replica, trusting only bundle.
func (f *testReplicas) allVerify(bundle []byte) error {
	var errs []error
	for _, address := range f.addresses {
		errs = append(errs, dial(address, bundle, f.clock))
	}
	return errors.Join(errs...)
}

// checkBundles checks that every replica has the stored bundle, of count authorities.
func (f *testReplicas) checkBundles(count int) error {
	want := f.stored()
	if len(want.trusted()) != count {
		return fmt.Errorf("%d authorities stored, want %d", len(want.trusted()), count)
	}
	for i, replica := range f.replicas {
		if !bytes.Equal(replica.CABundle(), want.bundle()) {
			return fmt.Errorf("replica %d has not read the secret yet", i)
		}
	}
	return nil
}

func (f *testReplicas) checkAnnotation(name string) error {
	if f.secret().Annotations[name] == "" {
		return fmt.Errorf("annotation %s is not set yet", name)
	}
	return nil
}

func (f *testReplicas) secret() *corev1.Secret {
	f.t.Helper()
	secret, err := f.client.CoreV1().Secrets(f.namespace).Get(f.t.Context(), secretName, metav1.GetOptions{})
	require.NoError(f.t, err)
	return secret
}

func (f *testReplicas) stored() state {
	f.t.Helper()
	secret, err := f.client.CoreV1().Secrets(f.namespace).Get(f.t.Context(), secretName, metav1.GetOptions{})
	if err != nil {
		return state{}
	}
	s, _ := decode(secret)
	return s
}

// waitSettled waits until no replica has pending changes.
func (f *testReplicas) waitSettled() {
	f.t.Helper()
	f.eventually(func() error {
		now, s := f.clock.Now(), f.stored()
		if next := f.replicas[0].rules.nextAt(s, observation{}); !now.Before(next) {
			return fmt.Errorf("the secret is behind: due at %s", next)
		}
		for i, replica := range f.replicas {
			if needsLeaf(replica.serving.Load(), s, now) {
				return fmt.Errorf("replica %d has a leaf to renew", i)
			}
		}
		return f.checkBundles(len(s.trusted()))
	})
}

func (f *testReplicas) wakeUp() {
	for _, replica := range f.replicas {
		replica.wakeUp()
	}
}

func (f *testReplicas) clientBundle() []byte {
	if bundle := f.trusted.Load(); bundle != nil {
		return *bundle
	}
	return nil
}

// publishFrom does what a leader does: it publishes every new bundle to the clients,
// and then confirms it.
func (f *testReplicas) publishFrom(source Publisher) (stop func()) {
	done := make(chan struct{})
	var publishing sync.WaitGroup
	publishing.Go(func() {
		for {
			changed, bundle := source.Changed(), source.CABundle()
			f.trusted.Store(&bundle)
			source.Published(bundle)
			select {
			case <-done:
				return
			case <-changed:
			}
		}
	})
	return func() { close(done); publishing.Wait() }
}

// handshakeContinuously makes handshakes with every replica until the returned
// function is called, which returns their number and the errors.
func (f *testReplicas) handshakeContinuously() (finish func() (int, []error)) {
	var mu sync.Mutex
	var failures []error
	var shakes atomic.Int64
	done := make(chan struct{})
	var running sync.WaitGroup
	for range 2 {
		running.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := f.allVerify(f.clientBundle()); err != nil {
					mu.Lock()
					failures = append(failures, err)
					mu.Unlock()
				}
				shakes.Add(int64(len(f.addresses)))
			}
		})
	}
	return func() (int, []error) { close(done); running.Wait(); return int(shakes.Load()), failures }
}
