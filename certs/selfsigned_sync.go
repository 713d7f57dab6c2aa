package certs

import (
	"context"
	"errors"
	"fmt"
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
	if err != nil {
		return errors.Join(err, a.renewWithoutSecret())
	}
	return nil
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
		a.opts.Log.Error(decodeErr, "the secret of the certificate authority is invalid")
	}
	a.confirmed = a.confirmed.observe(stored.publishedAt, now)
	planned, steps, err := a.rules.plan(stored, a.localState(now))
	if err != nil {
		return err
	}
	if err := a.store.write(ctx, secret, corev1.SecretTypeTLS, func(s *corev1.Secret) { encode(planned, s) }); err != nil {
		return a.handleWriteError(stored, now, err)
	}
	for _, step := range steps {
		a.opts.Log.Info(string(step), "namespace", a.opts.Namespace, "secret", a.opts.SecretName)
	}
	return a.apply(planned, now)
}

func (a *Authority) localState(now time.Time) localState {
	a.publishedMu.Lock()
	defer a.publishedMu.Unlock()
	return localState{now: now, lastState: a.lastState, published: a.trusted, confirmed: a.confirmed}
}

// handleWriteError applies the stored state if it is usable: a replica that is not
// allowed to write follows those that are.
func (a *Authority) handleWriteError(stored state, now time.Time, failure error) error {
	if errors.Is(failure, ErrContended) || !stored.current.usable(now) {
		return failure
	}
	return errors.Join(failure, a.apply(stored, now))
}

// apply publishes the bundle of s, then serves a certificate that it verifies. The
// order matters: clients must get the bundle first.
func (a *Authority) apply(s state, now time.Time) error {
	a.lastState, a.confirmed = s, a.confirmed.observe(s.publishedAt, now)
	a.publish(s.bundle())
	if !needsLeaf(a.serving.Load(), s, now) {
		return nil
	}
	return a.serve(s, now)
}

func (a *Authority) serve(s state, now time.Time) error {
	validity := a.opts.LeafValidity
	if s.leafValidity > 0 { // 0: not recorded yet
		validity = min(validity, s.leafValidity)
	}
	signed, err := issueLeaf(s.current, a.opts.Names, validity, now, a.opts.usages...)
	if err != nil {
		return err
	}
	a.serving.Store(signed)
	a.opts.Log.Info("serving a new certificate", "notAfter", signed.notAfter().UTC().Format(time.RFC3339),
		"renewal", signed.renewAt.UTC().Format(time.RFC3339))
	return nil
}

// renewWithoutSecret renews the certificate after its renewDeadline although the
// Secret cannot be read. If the authority was replaced meanwhile, the new
// certificate is no worse than the one that is about to expire.
func (a *Authority) renewWithoutSecret() error {
	now := a.opts.Clock.Now()
	serving := a.serving.Load()
	if serving == nil || now.Before(serving.renewDeadline()) || !a.lastState.current.usable(now) {
		return nil
	}
	if err := a.serve(a.lastState, now); err != nil {
		return fmt.Errorf("renew without the secret: %w", err)
	}
	return nil
}
