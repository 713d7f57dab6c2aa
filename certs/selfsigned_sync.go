package certs

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// syncTimeout bounds one synchronisation, so that an API server that hangs
	// is tried again.
	syncTimeout = 20 * time.Second
	// maxAttempts is how often to plan anew after losing to other replicas.
	maxAttempts = 5
)

// sync reads the Secret, moves it on if it is time, and serves what it says.
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

// attempt is one pass of sync; ErrContended if another replica was faster.
func (a *Authority) attempt(ctx context.Context) error {
	// Before the read: whatever is signed then lives from before the moment at
	// which another replica could retire its issuer.
	now := a.opts.Clock.Now()
	secret, err := a.store.read(ctx)
	if err != nil {
		return err
	}
	stored, problem := decode(secret)
	if problem != nil {
		a.opts.Log.Error(problem, "the secret of the certificate authority is invalid")
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

// afterFailedWrite goes on with what is stored where that is good: a replica
// that may not write still follows those that can.
func (a *Authority) handleWriteError(stored state, now time.Time, failure error) error {
	if errors.Is(failure, ErrContended) || !stored.current.usable(now) {
		return failure
	}
	return errors.Join(failure, a.apply(stored, now))
}

// adopt tells the bundle of s, then serves a certificate that it verifies. The
// order matters: nobody sees a certificate before what verifies it.
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
	if s.leafValidity > 0 { // else not recorded yet, as by a replica that cannot write
		validity = min(validity, s.leafValidity)
	}
	signed, err := issueLeaf(s.current, a.opts.Names, validity, now)
	if err != nil {
		return err
	}
	a.serving.Store(signed)
	a.opts.Log.Info("serving a new certificate", "notAfter", signed.notAfter().UTC().Format(time.RFC3339),
		"renewal", signed.renewAt.UTC().Format(time.RFC3339))
	return nil
}

// lastCall renews without a fresh read of the Secret once it can wait no
// longer. If the authority was followed meanwhile the new certificate is worth
// no less than the one that is about to expire.
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
