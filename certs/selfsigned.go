package certs

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"
)

// Defaults of Options.
const (
	DefaultCAValidity       = 365 * 24 * time.Hour
	DefaultLeafValidity     = 30 * 24 * time.Hour
	DefaultPropagationDelay = time.Minute
	DefaultPollInterval     = 10 * time.Second
)

// Limits of Options, which the caller checks.
const (
	// MinLeafValidity keeps lifetimes well above the resolution of X.509 dates, one
	// second.
	MinLeafValidity = 5 * time.Second
	// MinCALives is the minimum lifetime of an authority, in leaf lifetimes: it is
	// replaced after two thirds of its lifetime and must then outlast a whole leaf.
	MinCALives = 3
)

// minDelay keeps the loop from spinning if a planned time has come and cannot be
// acted on.
const minDelay = 200 * time.Millisecond

// Options configures an Authority. Secrets, Namespace and SecretName are required.
type Options struct {
	// Secrets is the client, such as a kubernetes.Interface's CoreV1().
	Secrets corev1client.SecretsGetter
	// Namespace and SecretName are the Secret that the replicas share.
	Namespace, SecretName string
	// Names are the DNS names and IP addresses to serve; see ServiceNames. Without any,
	// the authority signs for peers only.
	Names []string

	// CAValidity is the lifetime of an authority (default DefaultCAValidity).
	CAValidity time.Duration
	// LeafValidity is the lifetime of a certificate that it signs (default
	// DefaultLeafValidity), at most a third of CAValidity.
	LeafValidity time.Duration
	// PropagationDelay is how long a published bundle takes to be used by every API
	// server (default DefaultPropagationDelay, less for short lifetimes).
	PropagationDelay time.Duration
	// PollInterval is how often the Secret is read (default DefaultPollInterval, less for
	// short lifetimes).
	PollInterval time.Duration

	// Clock defaults to the real clock.
	Clock clock.Clock
	// Log gets one line for each phase of a rotation and for each failure.
	Log logr.Logger
}

func (o Options) withDefaults() Options {
	o.CAValidity = cmp.Or(o.CAValidity, DefaultCAValidity)
	o.LeafValidity = cmp.Or(o.LeafValidity, DefaultLeafValidity)
	o.PropagationDelay = cmp.Or(o.PropagationDelay, min(DefaultPropagationDelay, o.CAValidity/60))
	o.PollInterval = cmp.Or(o.PollInterval, min(DefaultPollInterval, o.LeafValidity/20))
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return o
}

// rules returns the parts of o that decide on rotation.
func (o Options) rules() rotationRules {
	return rotationRules{
		name:           o.SecretName,
		caValidity:     o.CAValidity,
		leafValidity:   o.LeafValidity,
		publishTimeout: publishTimeout(o.CAValidity),
		// A new leader may be one poll behind, and publish an older bundle again
		// until it has read the Secret.
		propagation: o.PropagationDelay + o.PollInterval,
	}
}

// Authority is a Source with a certificate authority of its own, in a Secret that all
// replicas share. It signs the serving certificate of the replica, and the one of its
// calls to other replicas (ServerTLS, ClientTLS). Create it with New and run Start.
type Authority struct {
	loop
	*publisher // of the bundle

	opts     Options
	rules    rotationRules
	store    secretStore
	serving  *identity
	peer     *identity
	signsFor []*identity

	publishedMu sync.Mutex
	published   []byte
	trusted     []*x509.Certificate // the certificates of published

	lastState state // as last applied; only used by the loop, like confirmed
	confirmed observation
}

var _ Source = (*Authority)(nil)

// New returns an Authority that does nothing until Start.
func New(opts Options) *Authority {
	opts = opts.withDefaults()
	a := &Authority{
		loop: newLoop(opts.Log, "certificates with their secret"), publisher: newPublisher(),
		opts: opts, rules: opts.rules(),
		store:   secretStore{opts.Secrets.Secrets(opts.Namespace), opts.Namespace, opts.SecretName},
		serving: &identity{names: opts.Names, usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}},
		peer:    &identity{names: []string{peerName(opts.Namespace)}, usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}},
	}
	a.signsFor = []*identity{a.serving, a.peer}
	if len(opts.Names) == 0 {
		a.signsFor = []*identity{a.peer}
	}
	return a
}

// Start manages the certificates until ctx ends, and then returns nil. A failure is
// logged and retried: the certificate in use stays valid meanwhile. Call it once.
// After it returned the last certificate is still served, so that a server can
// drain.
func (a *Authority) Start(ctx context.Context) error {
	return a.run(ctx, a.opts.Clock, func(ctx context.Context) (time.Duration, error) {
		if err := a.sync(ctx); err != nil {
			return retryDelay, err
		}
		return a.nextDelay(), nil
	})
}

// nextDelay is the time until the next planned change, or until the next poll.
func (a *Authority) nextDelay() time.Duration {
	at := a.rules.nextAt(a.lastState, a.confirmed)
	for _, i := range a.signsFor {
		at = earlier(at, i.Load().renewAt)
	}
	return max(minDelay, min(a.opts.PollInterval, at.Sub(a.opts.Clock.Now())))
}

// GetCertificate implements Source.
func (a *Authority) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return a.certificate(a.serving)
}

func (a *Authority) certificate(i *identity) (*tls.Certificate, error) {
	if leaf := i.Load(); leaf != nil {
		return leaf.tls, nil
	}
	return nil, a.withCause(ErrNotReady)
}

// CABundle implements Source.
func (a *Authority) CABundle() []byte { return a.get() }

// Healthy implements Source.
func (a *Authority) Healthy(*http.Request) error {
	cert, err := a.GetCertificate(nil)
	if err != nil {
		return err
	}
	return a.expired(cert.Leaf, a.opts.Clock.Now())
}

// Problem returns the last failure while a certificate is served.
func (a *Authority) Problem() error {
	if a.serving.Load() == nil {
		return nil // Healthy reports it
	}
	return a.failure()
}

// Published implements Source: a new authority signs only once clients trust it. What is
// invalid in a bundle confirms nothing.
func (a *Authority) Published(bundle []byte) {
	a.publishedMu.Lock()
	defer a.publishedMu.Unlock()
	if bytes.Equal(a.published, bundle) {
		return
	}
	a.published = bytes.Clone(bundle)
	a.trusted, _ = parseAuthorities(bundle)
	a.wakeUp()
}

// Expiries implements Source.
func (a *Authority) Expiries() map[string]time.Time {
	out := map[string]time.Time{}
	if leaf := a.peer.Load(); leaf != nil {
		out[NamePeer] = leaf.notAfter()
	}
	if leaf := a.serving.Load(); leaf != nil {
		out[NameServing], out[NameAuthority] = leaf.notAfter(), leaf.issuer.NotAfter
	}
	return out
}
