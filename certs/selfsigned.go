package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// minDelay keeps the loop from spinning if a planned time has come and cannot be
	// acted on.
	minDelay = 200 * time.Millisecond
	// initialBackoff and maxBackoff bound the delay after a failure.
	initialBackoff = 250 * time.Millisecond
	maxBackoff     = 10 * time.Second
)

// Authority is a Publisher with a certificate authority of its own, in a Secret
// that all replicas share. Create it with New and run Start.
type Authority struct {
	opts  Options
	rules rotationRules
	store secretStore

	wake    wakeup               // wakes the loop to read the Secret
	serving atomic.Pointer[leaf] // nil until the first is signed
	failure atomic.Pointer[error]

	*bundlePublisher // CABundle and Changed

	publishedMu sync.Mutex
	published   []byte
	trusted     []*x509.Certificate // the certificates of published

	lastState state // as last applied; only used by the loop, like confirmed
	confirmed observation
}

var _ Publisher = (*Authority)(nil)

// New returns an Authority that does nothing until Start, or all errors of opts.
func New(opts Options) (*Authority, error) {
	opts, err := opts.complete()
	if err != nil {
		return nil, err
	}
	return &Authority{
		opts:            opts,
		rules:           opts.rules(),
		store:           secretStore{client: opts.Secrets.Secrets(opts.Namespace), namespace: opts.Namespace, name: opts.SecretName},
		wake:            newWakeup(),
		bundlePublisher: newBundlePublisher(),
	}, nil
}

// Start manages the certificates until ctx ends, and then returns nil. A failure is
// logged and retried: the certificate in use stays valid meanwhile. Call it once.
// After it returned the last certificate is still served, so that a server can
// drain.
func (a *Authority) Start(ctx context.Context) error {
	var watching sync.WaitGroup
	watching.Go(func() { a.store.watch(ctx, a.opts.Log, a.wakeUp) })
	defer watching.Wait()
	retry := newBackoff()
	for ctx.Err() == nil {
		delay := a.runOnce(ctx, &retry)
		a.wake.wait(ctx, a.opts.Clock, delay)
	}
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica serves
// a certificate.
func (a *Authority) NeedLeaderElection() bool { return false }

func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: initialBackoff, Factor: 2, Jitter: 0.2, Steps: 10, Cap: maxBackoff}
}

// runOnce syncs once and returns the delay until the next sync.
func (a *Authority) runOnce(ctx context.Context, retry *wait.Backoff) time.Duration {
	err := a.sync(ctx)
	if err == nil {
		a.failure.Store(nil)
		*retry = newBackoff()
		return a.nextDelay()
	}
	if ctx.Err() != nil {
		return 0
	}
	a.failure.Store(&err)
	pause := retry.Step()
	a.opts.Log.Error(err, "cannot sync certificates with their secret", "retryIn", pause.String())
	return pause
}

// nextDelay is the time until the next planned change, or until the next poll.
func (a *Authority) nextDelay() time.Duration {
	at := earlier(a.rules.nextAt(a.lastState, a.confirmed), a.serving.Load().renewAt)
	return max(minDelay, min(a.opts.PollInterval, at.Sub(a.opts.Clock.Now())))
}

// wakeUp makes the loop read the Secret now.
func (a *Authority) wakeUp() { a.wake.signal() }

// GetCertificate implements Source.
func (a *Authority) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	serving := a.serving.Load()
	if serving == nil {
		return nil, a.withCause(ErrNotReady)
	}
	return serving.tls, nil
}

// Healthy implements Source.
func (a *Authority) Healthy(*http.Request) error {
	serving := a.serving.Load()
	if serving == nil {
		return a.withCause(ErrNotReady)
	}
	if end := serving.notAfter(); !a.opts.Clock.Now().Before(end) {
		return a.withCause(fmt.Errorf("serving certificate expired at %s", end.UTC().Format(time.RFC3339)))
	}
	return nil
}

// withCause adds the last failure to err, if there is one.
func (a *Authority) withCause(err error) error {
	if failure := a.failure.Load(); failure != nil {
		return fmt.Errorf("%w: %w", err, *failure)
	}
	return err
}

// Published implements Publisher. Invalid bundles confirm nothing.
func (a *Authority) Published(bundle []byte) {
	a.publishedMu.Lock()
	defer a.publishedMu.Unlock()
	if bytes.Equal(a.published, bundle) {
		return
	}
	trusted, err := parseBundle(bundle)
	if err != nil && !errors.Is(err, ErrNotPEM) {
		a.opts.Log.Info("the published bundle contains invalid certificates", "err", err.Error())
	}
	a.published, a.trusted = bytes.Clone(bundle), trusted
	a.wakeUp()
}
