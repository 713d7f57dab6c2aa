package certs

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// syncTimeout limits one sync, so that requests to an API server that hangs are
	// retried.
	syncTimeout = 20 * time.Second
	// maxAttempts limits retries after conflicts with other replicas.
	maxAttempts = 5
)

// sync reads the Secret, advances the rotation if it is due, and applies the result.
func (a *Authority) sync(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	err := a.attempt(ctx)
	for tries := 1; errors.Is(err, ErrContended) && tries < maxAttempts; tries++ {
		err = a.attempt(ctx)
	}
	return err
}

// attempt is one try of sync. It returns ErrContended on a conflict with another
// replica.
func (a *Authority) attempt(ctx context.Context) error {
	// Taken before the read: the validity of what is signed below then starts before
	// another replica can retire the issuer.
	now := a.opts.Clock.Now()
	secret, err := a.store.read(ctx)
	if err != nil {
		return err
	}
	stored, decodeErr := decode(secret)
	if decodeErr != nil {
		a.log.Error(decodeErr, "the secret of the certificate authority is invalid, and will be rewritten", "namespace", a.opts.Namespace, "secret", a.opts.SecretName)
	}
	a.confirmed = a.confirmed.observe(stored.publishedAt, now)
	planned, steps, err := a.rules.plan(stored, a.localState(now))
	if err != nil {
		return err
	}
	if err := a.store.write(ctx, secret, corev1.SecretTypeTLS, func(s *corev1.Secret) { encode(planned, s) }); err != nil {
		if errors.Is(err, ErrContended) || !stored.current.usable(now) {
			return err
		}
		return errors.Join(err, a.apply(stored, now)) // a replica that is not allowed to write follows those that are
	}
	for _, step := range steps {
		a.log.Info(string(step), "namespace", a.opts.Namespace, "secret", a.opts.SecretName)
	}
	return a.apply(planned, now)
}

func (a *Authority) localState(now time.Time) localState {
	a.publishedMu.Lock()
	defer a.publishedMu.Unlock()
	return localState{now: now, lastState: a.lastState, published: a.trusted, confirmed: a.confirmed}
}

// apply publishes the bundle of s, then serves certificates that it verifies. The
// order matters: clients must get the bundle first.
func (a *Authority) apply(s state, now time.Time) error {
	a.lastState, a.confirmed = s, a.confirmed.observe(s.publishedAt, now)
	a.publish(s.bundle())
	if len(a.opts.Names) == 0 { // its only clients are replicas, which read the Secret
		a.Published(s.bundle())
	}
	for _, i := range a.signsFor {
		if needsLeaf(i.Load(), s, now) {
			if err := a.sign(i, s, now); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *Authority) sign(i *identity, s state, now time.Time) error {
	validity := a.opts.LeafValidity
	if s.leafValidity > 0 { // 0: not recorded yet
		validity = min(validity, s.leafValidity)
	}
	signed, err := issueLeaf(s.current, i, validity, now)
	if err != nil {
		return err
	}
	i.Store(signed)
	a.log.Info("serving a new certificate", "name", i.names[0], "notAfter", formatTime(signed.notAfter()), "renewal", formatTime(signed.renewAt))
	return nil
}
