package certs

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"
)

// Defaults of PathTokensOptions.
const (
	DefaultTokenPoll   = 5 * time.Second
	DefaultTokenSpread = 20 * time.Second
	DefaultTokenKeep   = 5 * time.Minute
)

// ErrNoTokenYet is in the error of PathTokens and PathTokenFile before a token is
// known.
var ErrNoTokenYet = errors.New("no token of the webhook path yet")

// PathTokensOptions configures PathTokens. Secrets, Namespace and SecretName are
// required.
type PathTokensOptions struct {
	// Secrets is the client, such as a kubernetes.Interface's CoreV1().
	Secrets corev1client.SecretsGetter
	// Namespace and SecretName are the Secret that the replicas share.
	Namespace, SecretName string
	// PollInterval is how often the Secret is read without a watch event (default
	// DefaultTokenPoll).
	PollInterval time.Duration
	// Spread is how long a new token is staged, so that all replicas have read it
	// before it is used (default DefaultTokenSpread).
	Spread time.Duration
	// Keep is how long an old token is accepted after the webhook configurations
	// have the new one, or after it was removed from the Secret (default
	// DefaultTokenKeep).
	Keep time.Duration
	// Clock defaults to the real clock.
	Clock clock.Clock
	// Log gets one line for each step. Tokens are never logged.
	Log logr.Logger
}

// PathTokens are the tokens with which the path of a webhook call must end. Only
// clients that can read the webhook configurations or the Secret know them. All
// replicas share them in a Secret. If the Secret is deleted, it is restored from
// memory, and the token is rotated: a new one is staged and promoted, and the old one
// retired.
type PathTokens struct {
	opts     PathTokensOptions
	rules    tokenRules
	store    secretStore
	wake     wakeup
	failure  atomic.Pointer[error]
	token    *publisher
	accepted atomic.Pointer[[]acceptedToken] // nil until the Secret was read

	mu          sync.Mutex
	published   string
	publishedAt time.Time

	// Only used by the loop: the Secret as last applied and when, when its next
	// token was first observed, and when each token was last observed.
	lastState        tokenState
	lastAt, stagedAt time.Time
	lastSeen         map[string]time.Time
}

// acceptedToken is a token that is accepted.
type acceptedToken struct {
	token string
	until time.Time // zero: while it is in the Secret
}

// NewPathTokens returns PathTokens that do nothing until Start, or the error of opts.
func NewPathTokens(opts PathTokensOptions) (*PathTokens, error) {
	opts.PollInterval = cmp.Or(opts.PollInterval, DefaultTokenPoll)
	opts.Spread = cmp.Or(opts.Spread, DefaultTokenSpread)
	opts.Keep = cmp.Or(opts.Keep, DefaultTokenKeep)
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	switch {
	case opts.Secrets == nil:
		return nil, errors.New("path tokens: no client for secrets given")
	case opts.Namespace == "" || opts.SecretName == "":
		return nil, fmt.Errorf("path tokens: secret %q/%q: namespace and name are required", opts.Namespace, opts.SecretName)
	case min(opts.PollInterval, opts.Spread, opts.Keep) < 0:
		return nil, errors.New("path tokens: durations must not be negative")
	}
	return &PathTokens{
		opts: opts, rules: tokenRules{propagation: opts.Spread, retention: opts.Keep},
		store: secretStore{client: opts.Secrets.Secrets(opts.Namespace), namespace: opts.Namespace, name: opts.SecretName},
		wake:  newWakeup(), token: newPublisher(), lastSeen: map[string]time.Time{},
	}, nil
}

// Start manages the tokens until ctx ends, and then returns nil. A failure is logged
// and retried. Call it once.
func (t *PathTokens) Start(ctx context.Context) error {
	var watching sync.WaitGroup
	watching.Go(func() { t.store.watch(ctx, t.opts.Log, t.wake.signal) })
	defer watching.Wait()
	retry := newBackoff()
	for ctx.Err() == nil {
		delay := t.opts.PollInterval
		err := t.sync(ctx)
		switch {
		case err == nil:
			t.failure.Store(nil)
			retry = newBackoff()
		case ctx.Err() == nil:
			t.failure.Store(&err)
			delay = retry.Step()
			t.opts.Log.Error(err, "cannot sync path tokens with their secret", "retryIn", delay.String())
		}
		t.wake.wait(ctx, t.opts.Clock, delay)
	}
	return nil
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica
// accepts tokens.
func (t *PathTokens) NeedLeaderElection() bool { return false }

// sync reads the Secret, advances the rotation if it is due, and applies the result.
func (t *PathTokens) sync(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	err := t.attempt(ctx)
	for tries := 1; errors.Is(err, ErrContended) && tries < maxAttempts; tries++ {
		err = t.attempt(ctx)
	}
	return err
}

func (t *PathTokens) attempt(ctx context.Context) error {
	now := t.opts.Clock.Now()
	secret, err := t.store.read(ctx)
	if err != nil {
		return err
	}
	stored, decodeErr := decodeTokens(secret)
	if decodeErr != nil {
		t.opts.Log.Error(decodeErr, "the secret of the path tokens is invalid")
	}
	planned, steps := t.rules.plan(stored, t.localState(stored, now))
	if err := t.store.write(ctx, secret, corev1.SecretTypeOpaque, func(s *corev1.Secret) { encodeTokens(planned, s) }); err != nil {
		if !errors.Is(err, ErrContended) && planned.current == stored.current {
			t.apply(stored, now) // also replicas that are not allowed to write follow the Secret
		}
		return err
	}
	for _, step := range steps {
		t.opts.Log.Info(string(step), "namespace", t.opts.Namespace, "secret", t.opts.SecretName)
	}
	t.apply(planned, now)
	return nil
}

// localState returns what this replica knows in addition to the Secret.
func (t *PathTokens) localState(stored tokenState, now time.Time) localTokenState {
	k := localTokenState{lastState: t.lastState, lastAge: now.Sub(t.lastAt)}
	if stored.next != "" && stored.next == t.lastState.next {
		k.stagedFor = now.Sub(t.stagedAt)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.published != "" && t.published == stored.current {
		k.publishedFor = now.Sub(t.publishedAt)
	}
	return k
}

// apply accepts the tokens of p and, for a while, those before. It does so before the
// current token is published.
func (t *PathTokens) apply(p tokenState, now time.Time) {
	if p.next != t.lastState.next {
		t.stagedAt = now
	}
	t.lastState, t.lastAt = p, now
	var known []acceptedToken
	for _, token := range p.all() {
		t.lastSeen[token] = now
		known = append(known, acceptedToken{token: token})
	}
	for token, at := range t.lastSeen {
		until := at.Add(t.opts.Keep)
		switch {
		case at.Equal(now):
		case now.Before(until):
			known = append(known, acceptedToken{token, until})
		default:
			delete(t.lastSeen, token)
		}
	}
	t.accepted.Store(&known)
	t.token.publish([]byte(p.current))
}

// Accepts reports whether a path with this token is accepted. known is false before
// any token is known.
func (t *PathTokens) Accepts(token string) (ok, known bool) {
	tokens := t.accepted.Load()
	if tokens == nil {
		return false, false
	}
	now := t.opts.Clock.Now()
	for _, k := range *tokens {
		// All are compared, each in constant time, against timing attacks.
		same := subtle.ConstantTimeCompare([]byte(k.token), []byte(token)) == 1
		ok = ok || same && (k.until.IsZero() || now.Before(k.until))
	}
	return ok, true
}

// Token returns the token for the webhook configurations; "" until known.
func (t *PathTokens) Token() string { return string(t.token.Value()) }

// Changed returns a channel that is closed when Token next changes. Get the
// channel before reading the token, so that no change is missed.
func (t *PathTokens) Changed() <-chan struct{} { return t.token.Changed() }

// Published reports that the webhook configurations have a token.
func (t *PathTokens) Published(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.published != token {
		t.published, t.publishedAt = token, t.opts.Clock.Now()
	}
}

// Healthy is a readiness check: nil once a token is known.
func (t *PathTokens) Healthy(*http.Request) error {
	if t.accepted.Load() != nil {
		return nil
	}
	if failure := t.failure.Load(); failure != nil {
		return fmt.Errorf("%w: %w", ErrNoTokenYet, *failure)
	}
	return ErrNoTokenYet
}
