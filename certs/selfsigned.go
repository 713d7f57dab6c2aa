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
	// minPause keeps a moment that has come, and cannot be acted on, from
	// turning the loop into a spin.
	minDelay = 200 * time.Millisecond
	// firstRetry and lastRetry bound the pause after a failure.
	initialBackoff = 250 * time.Millisecond
	maxBackoff     = 10 * time.Second
)

// Authority is a Publisher that manages its certificates by itself, in a Secret
// that it shares with the other replicas. Make one with New and run Start.
type Authority struct {
	opts  Options
	rules rotationRules
	store secretStore

	wake    wakeup               // to read the Secret now
	serving atomic.Pointer[leaf] // nil until the first is signed
	failure atomic.Pointer[error]

	*bundlePublisher // CABundle and Changed

	publishedMu sync.Mutex
	published   []byte
	trusted     []*x509.Certificate // published, read

	lastState state // what was last acted on; the loop's alone, as is confirmed
	confirmed observation
}

var _ Publisher = (*Authority)(nil)

// New returns an Authority that does nothing until Start, or every reason why
// opts cannot be used.
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

// Start keeps the certificates until ctx ends, and then returns nil: a failure
// is logged and tried again, for what is served stays good meanwhile. Call it
// once. After it has returned the last certificate is still served, so that a
// server can drain.
func (a *Authority) Start(ctx context.Context) error {
	var watching sync.WaitGroup
	watching.Go(func() { a.store.watch(ctx, a.opts.Log, a.wakeUp) })
	defer watching.Wait()
	retry := newBackoff()
	for ctx.Err() == nil {
		pause := a.runOnce(ctx, &retry)
		a.wake.wait(ctx, a.opts.Clock, pause)
	}
	return nil
}

// NeedLeaderElection tells controller-runtime to run an Authority on every
// replica: each has a certificate to serve.
func (a *Authority) NeedLeaderElection() bool { return false }

func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: initialBackoff, Factor: 2, Jitter: 0.2, Steps: 10, Cap: maxBackoff}
}

// round synchronises once and returns how long to wait for the next time.
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

// untilNext is the time to the next moment of the plan, or to the next poll.
func (a *Authority) nextDelay() time.Duration {
	at := earlier(a.rules.nextAt(a.lastState, a.confirmed), a.serving.Load().renewAt)
	return max(minDelay, min(a.opts.PollInterval, at.Sub(a.opts.Clock.Now())))
}

// hint has the loop read the Secret now.
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

// because adds the last failure to err, if there is one.
func (a *Authority) withCause(err error) error {
	if failure := a.failure.Load(); failure != nil {
		return fmt.Errorf("%w: %w", err, *failure)
	}
	return err
}

// Published implements Publisher. What is no bundle confirms nothing.
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
