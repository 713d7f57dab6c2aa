package certs

import (
	"context"
	"crypto/tls"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	clocktesting "k8s.io/utils/clock/testing"
)

var secrets = schema.GroupResource{Resource: "secrets"}

// stubSecrets has one Secret, and injects failures at times that a real API server
// does not allow to control.
type stubSecrets struct {
	corev1client.SecretInterface
	stored           *corev1.Secret
	failGet, failPut error
	duringGet        func() // what happens while the API server answers
	beforePut        func() // what another replica does between a read and a write
	writes           int
}

func (s *stubSecrets) Secrets(string) corev1client.SecretInterface { return s }

func (s *stubSecrets) Get(context.Context, string, metav1.GetOptions) (*corev1.Secret, error) {
	if s.duringGet != nil {
		s.duringGet()
	}
	if s.failGet != nil {
		return nil, s.failGet
	}
	if s.stored == nil {
		return nil, apierrors.NewNotFound(secrets, "ca")
	}
	return s.stored.DeepCopy(), nil
}

func (s *stubSecrets) Create(_ context.Context, secret *corev1.Secret, _ metav1.CreateOptions) (*corev1.Secret, error) {
	return s.put(secret)
}

func (s *stubSecrets) Update(_ context.Context, secret *corev1.Secret, _ metav1.UpdateOptions) (*corev1.Secret, error) {
	return s.put(secret)
}

func (s *stubSecrets) put(secret *corev1.Secret) (*corev1.Secret, error) {
	if previous := s.beforePut; previous != nil {
		previous()
	}
	if s.failPut != nil {
		return nil, s.failPut
	}
	s.writes++
	s.stored = secret.DeepCopy()
	s.stored.ResourceVersion = "1"
	return secret, nil
}

// testAuthority is an Authority with a stub, which tests sync explicitly.
type testAuthority struct {
	*Authority
	t       *testing.T
	clock   *clocktesting.FakeClock
	secrets *stubSecrets
	log     []string
	onLog   func(line string)
}

func newTestAuthority(t *testing.T) *testAuthority {
	t.Helper()
	d := &testAuthority{t: t, clock: clocktesting.NewFakeClock(epoch), secrets: &stubSecrets{}}
	d.Authority = New(Options{
		Secrets: d.secrets, Namespace: "own", SecretName: "ca", Names: []string{"a"},
		CAValidity: 90 * hour, LeafValidity: 10 * hour, Clock: d.clock, Log: d.logger(),
	})
	return d
}

func (d *testAuthority) logger() logr.Logger {
	return funcr.New(func(_, args string) {
		d.log = append(d.log, args)
		if d.onLog != nil {
			d.onLog(args)
		}
	}, funcr.Options{})
}

func (d *testAuthority) setTime(hours float64) { d.clock.SetTime(at(hours)) }

func (d *testAuthority) served() *tls.Certificate {
	d.t.Helper()
	cert, err := d.GetCertificate(nil)
	require.NoError(d.t, err)
	return cert
}

func TestNotReadyHasAReason(t *testing.T) {
	d := newTestAuthority(t)
	d.secrets.failGet = errors.New("connection refused")
	d.record(d.sync(t.Context()))
	require.ErrorIs(t, d.Healthy(nil), ErrNotReady)
	require.ErrorContains(t, d.Healthy(nil), "read secret own/ca: connection refused")
	require.NoError(t, d.Problem(), "Healthy reports it")

	d.secrets.failGet = nil
	d.record(d.sync(t.Context()))
	require.NoError(t, d.Healthy(nil))
	require.NoError(t, d.Problem())
	d.secrets.failGet = errors.New("forbidden")
	d.record(d.sync(t.Context()))
	require.NoError(t, d.Healthy(nil))
	require.EqualError(t, d.Problem(), "read secret own/ca: forbidden")
}

func TestNothingIsServedBeforeItIsStored(t *testing.T) {
	d := newTestAuthority(t)
	d.secrets.failPut = apierrors.NewForbidden(secrets, "ca", errors.New("no rights"))
	require.ErrorContains(t, d.sync(t.Context()), "create secret own/ca: ")
	require.ErrorIs(t, d.Healthy(nil), ErrNotReady)
	_, err := d.GetCertificate(nil)
	require.ErrorIs(t, err, ErrNotReady)
	assert.Nil(t, d.CABundle())
}

func TestServedCertificateIsRenewedInTime(t *testing.T) {
	d := newTestAuthority(t)
	require.NoError(t, d.sync(t.Context()))
	first := d.served()
	d.setTime(4)
	require.NoError(t, d.sync(t.Context()))
	assert.Same(t, first, d.served(), "not two thirds over yet")
	d.setTime(6.7)
	require.NoError(t, d.sync(t.Context()))
	assert.NotSame(t, first, d.served())
	assert.Equal(t, at(16.7), d.served().Leaf.NotAfter)
	assert.Equal(t, 1, d.secrets.writes, "leaves are not in the secret")
}

func TestLoopWakesForThePlannedTime(t *testing.T) {
	d := newTestAuthority(t)
	require.NoError(t, d.sync(t.Context()))
	assert.Equal(t, DefaultPollInterval, d.nextDelay())
	d.opts.PollInterval = 1000 * hour
	pause := d.nextDelay()
	assert.Equal(t, earlier(d.serving.Load().renewAt, d.peer.Load().renewAt), d.clock.Now().Add(pause))
	d.setTime(60)
	assert.Equal(t, minDelay, d.nextDelay(), "the loop must not spin")
}

func TestConflictIsRetried(t *testing.T) {
	winner, loser := newTestAuthority(t), newTestAuthority(t)
	require.NoError(t, winner.sync(t.Context()))
	loser.secrets.beforePut = func() {
		loser.secrets.stored = winner.secrets.stored
		loser.secrets.failPut = apierrors.NewAlreadyExists(secrets, "ca")
	}
	require.NoError(t, loser.sync(t.Context()))
	assert.Equal(t, winner.CABundle(), loser.CABundle())
	assert.True(t, loser.serving.Load().issuer.Equal(winner.serving.Load().issuer))
}

func TestPersistentConflictsAreAFailure(t *testing.T) {
	for name, conflict := range map[string]error{
		"a conflict":       apierrors.NewConflict(secrets, "ca", errors.New("changed")),
		"deleted meantime": apierrors.NewNotFound(secrets, "ca"),
	} {
		t.Run(name, func(t *testing.T) {
			d := newTestAuthority(t)
			require.NoError(t, d.sync(t.Context()))
			served, tries := d.served(), 0
			d.setTime(65)
			d.secrets.failPut, d.secrets.beforePut = conflict, func() { tries++ }
			require.ErrorIs(t, d.sync(t.Context()), ErrContended)
			assert.Equal(t, maxAttempts, tries)
			assert.Same(t, served, d.served())
		})
	}
}

func TestReadOnlyReplicaFollowsTheSecret(t *testing.T) {
	writer, reader := newTestAuthority(t), newTestAuthority(t)
	require.NoError(t, writer.sync(t.Context()))
	reader.secrets.stored = writer.secrets.stored
	reader.secrets.failPut = apierrors.NewForbidden(secrets, "ca", errors.New("no rights"))
	reader.setTime(61)
	require.ErrorContains(t, reader.sync(t.Context()), "update secret own/ca: ")
	require.NoError(t, reader.Healthy(nil))
	assert.Equal(t, writer.CABundle(), reader.CABundle())
}

func TestLeafValidityIsLimitedByTheSecret(t *testing.T) {
	short, long := newTestAuthority(t), newTestAuthority(t)
	require.NoError(t, short.sync(t.Context()))
	long.opts.LeafValidity, long.rules.leafValidity = 20*hour, 20*hour
	long.secrets.stored = short.secrets.stored
	long.secrets.failPut = errors.New("read only")
	require.Error(t, long.sync(t.Context()))
	assert.Equal(t, at(10), long.served().Leaf.NotAfter, "others count on ten hours")

	long.secrets.failPut = nil
	long.setTime(6.7)
	require.NoError(t, long.sync(t.Context()))
	assert.Equal(t, at(26.7), long.served().Leaf.NotAfter, "recorded, so others know")
}

func TestLeafIsIssuedAtTheTimeBeforeTheRead(t *testing.T) {
	d := newTestAuthority(t)
	d.secrets.duringGet = func() { d.clock.Step(hour) } // a promotion may come in between
	require.NoError(t, d.sync(t.Context()))
	assert.Equal(t, at(10), d.served().Leaf.NotAfter)
}

func TestExpiredIsNotHealthy(t *testing.T) {
	d := newTestAuthority(t)
	require.NoError(t, d.sync(t.Context()))
	d.setTime(10)
	require.ErrorContains(t, d.Healthy(nil), "2026-01-01T10:00:00Z")
}

func TestInvalidSecretIsRepairedWhileServing(t *testing.T) {
	d := newTestAuthority(t)
	require.NoError(t, d.sync(t.Context()))
	first, bundle := d.served(), d.CABundle()
	d.secrets.stored.Data[keyKey] = []byte("broken")
	require.NoError(t, d.sync(t.Context()))
	assert.Same(t, first, d.served())
	assert.Contains(t, string(d.CABundle()), string(bundle), "what clients trust stays")
	s, err := decode(d.secrets.stored)
	require.NoError(t, err)
	assert.True(t, s.current.cert.Equal(d.serving.Load().issuer))
	assert.Contains(t, strings.Join(d.log, "\n"), "tls.crt and tls.key: ")
}

func TestInvalidSecretThatCannotBeWritten(t *testing.T) {
	d := newTestAuthority(t)
	require.NoError(t, d.sync(t.Context()))
	first, bundle := d.served(), d.CABundle()
	d.secrets.stored.Data[keyKey] = []byte("broken")
	d.secrets.failPut = errors.New("read only")
	require.Error(t, d.sync(t.Context()))
	assert.Same(t, first, d.served())
	assert.Equal(t, bundle, d.CABundle())
	require.NoError(t, d.Healthy(nil))
}

func TestPublishedAdvancesTheRotation(t *testing.T) {
	d := newTestAuthority(t)
	require.NoError(t, d.sync(t.Context()))
	previous, changed := d.CABundle(), d.Changed()
	d.setTime(61)
	require.NoError(t, d.sync(t.Context()))
	select {
	case <-changed:
	default:
		t.Fatal("a new bundle must be published")
	}
	d.Published([]byte("no bundle"))
	d.Published(previous)
	require.NoError(t, d.sync(t.Context()))
	assert.NotContains(t, d.secrets.stored.Annotations, annotationPublishedAt, "the old bundle confirms nothing")

	d.Published(append([]byte(nil), d.CABundle()...))
	assert.Len(t, d.wake, 1, "the Secret is read now, not at the next poll")
	require.NoError(t, d.sync(t.Context()))
	old := d.serving.Load().issuer
	require.NoError(t, d.sync(t.Context()))
	assert.Equal(t, d.lastState.current.cert.Raw, old.Raw, "published, but not propagated yet")

	d.clock.Step(DefaultPropagationDelay + DefaultPollInterval)
	require.NoError(t, d.sync(t.Context()))
	assert.NotEqual(t, d.lastState.current.cert.Raw, old.Raw)
}

func TestBundleIsPublishedBeforeItsCertificateIsServed(t *testing.T) {
	d := newTestAuthority(t)
	served := 0
	d.onLog = func(line string) {
		if !strings.Contains(line, "serving a new certificate") {
			return
		}
		served++
		trusted, err := parseAuthorities(d.CABundle())
		require.NoError(t, err)
		assert.True(t, slices.ContainsFunc(trusted, d.serving.Load().issuer.Equal))
	}
	require.NoError(t, d.sync(t.Context()))
	other := newTestAuthority(t)
	require.NoError(t, other.sync(t.Context()))
	d.secrets.stored = other.secrets.stored // another client replaces the authority
	require.NoError(t, d.sync(t.Context()))
	assert.Equal(t, 4, served, "two, for the webhook and for replicas")
}

func TestChangedIsOpenWhileTheBundleIsUnchanged(t *testing.T) {
	d := newTestAuthority(t)
	require.NoError(t, d.sync(t.Context()))
	changed := d.Changed()
	d.setTime(7)
	require.NoError(t, d.sync(t.Context()))
	assert.Equal(t, changed, d.Changed())
}

func TestTLSConfig(t *testing.T) {
	d := newTestAuthority(t)
	require.NoError(t, d.sync(t.Context()))
	config := TLSConfig(d.Authority)
	assert.EqualValues(t, tls.VersionTLS13, config.MinVersion)
	assert.Equal(t, []string{"http/1.1"}, config.NextProtos)
	cert, err := config.GetCertificate(&tls.ClientHelloInfo{})
	require.NoError(t, err)
	assert.Same(t, d.served(), cert)
	assert.False(t, d.NeedLeaderElection())
}

func TestServiceNames(t *testing.T) {
	assert.Equal(t, []string{"overrule.own.svc", "overrule.own", "overrule.own.svc.cluster.local", "localhost"},
		ServiceNames("overrule", "own", "localhost"))
}
