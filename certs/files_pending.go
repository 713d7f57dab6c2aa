package certs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// bundlePropagation is how long a stored caBundle takes to be used by every API
	// server.
	bundlePropagation = 10 * time.Second
	// pendingTimeout limits how long a certificate is pending: by then the kubelet
	// has updated the leader's files, or waiting longer does not help.
	pendingTimeout = 5 * time.Minute
	// pendingPoll is how often the published bundles are read meanwhile.
	pendingPoll = 2 * time.Second
	// trustedBundlesTimeout limits such a read.
	trustedBundlesTimeout = 5 * time.Second
)

// TrustedBundle is a published bundle, with which clients verify the server.
type TrustedBundle struct {
	Where    string // for messages
	CABundle []byte
}

// pendingCert is a valid pair that is not served before clients trust it. It is
// immutable.
type pendingCert struct {
	pair         *certPair
	pendingSince time.Time // zero: no limit, as no client trusts it
	trustedSince time.Time // since when clients trust it; zero while they do not
	waitingFor   error     // nil once clients trust it
}

// ready reports whether the pair can be served.
func (c *pendingCert) ready(now time.Time) bool {
	return !c.trustedSince.IsZero() && now.Sub(c.trustedSince) >= bundlePropagation || !c.pendingSince.IsZero() && now.Sub(c.pendingSince) >= pendingTimeout
}

// reason describes what the pair waits for.
func (c *pendingCert) reason(path string) error {
	switch {
	case c.waitingFor == nil:
		return fmt.Errorf("%s: waiting until every API server trusts it, %s after its CA was published", path, bundlePropagation)
	case c.pendingSince.IsZero():
		return fmt.Errorf("%s: waiting until clients trust it: %w", path, c.waitingFor)
	}
	return fmt.Errorf("%s: waiting until %s at most: %w", path, formatTime(c.pendingSince.Add(pendingTimeout)), c.waitingFor)
}

// observeTrust updates trustedSince.
func (c *pendingCert) observeTrust(now time.Time) {
	switch {
	case c.waitingFor != nil:
		c.trustedSince = time.Time{}
	case c.trustedSince.IsZero():
		c.trustedSince = now
	}
}

// pendingFor returns p as pending, nil if it can be served. A pair is not delayed if
// all clients that trust the serving pair trust it, or if the serving pair has
// expired.
func (f *Files) pendingFor(ctx context.Context, p *certPair, now time.Time) *pendingCert {
	if f.opts.TrustedBundle == nil || len(p.ca) == 0 {
		return nil
	}
	previous := f.pending.Load()
	if previous != nil && !p.sameLeaf(previous.pair) {
		previous = nil
	}
	serving := f.serving.Load()
	var pending *pendingCert
	switch {
	case serving == nil:
		pending = f.pendingAtStart(ctx, p, previous, now)
	case now.After(serving.tls.Leaf.NotAfter) || p.sameLeaf(serving) || p.trustedWherever(serving, f.opts.Name, now):
	default:
		pending = f.pendingReplacement(ctx, p, previous, now)
	}
	if pending != nil && previous == nil {
		f.opts.Log.Info("new certificate is pending", "reason", pending.reason(f.path(CertFile)).Error(), "serving", f.describeServed())
	}
	return pending
}

// pendingAtStart returns the first pair of a replica as pending, nil if it can be
// served. It is pending if no published bundle verifies it: other replicas answer
// then. If this replica is the leader, it publishes the bundle itself.
func (f *Files) pendingAtStart(ctx context.Context, p *certPair, previous *pendingCert, now time.Time) *pendingCert {
	bundles, err := f.trustedBundles(ctx)
	if err != nil {
		return previous
	}
	pending := &pendingCert{pair: p}
	if len(bundles) > 0 && !slices.ContainsFunc(bundles, func(b TrustedBundle) bool { return f.verifies(b, p, now) }) {
		pending.waitingFor = notTrustedError(bundles[0])
	}
	if previous == nil && pending.waitingFor == nil {
		return nil // it was trusted before this replica started
	}
	if previous != nil {
		pending.trustedSince = previous.trustedSince
	}
	pending.observeTrust(now)
	if pending.ready(now) {
		return nil
	}
	return pending
}

// pendingReplacement returns p, which replaces another pair, as pending; nil if it
// can be served.
func (f *Files) pendingReplacement(ctx context.Context, p *certPair, previous *pendingCert, now time.Time) *pendingCert {
	pending := &pendingCert{pair: p, pendingSince: now, waitingFor: f.checkTrusted(ctx, p, now)}
	if previous != nil {
		pending.pendingSince, pending.trustedSince = previous.pendingSince, previous.trustedSince
	}
	pending.observeTrust(now)
	if !pending.ready(now) {
		return pending
	}
	if pending.waitingFor != nil {
		f.opts.Log.Error(pending.waitingFor, "serving a certificate that API servers may not trust; webhook calls may fail", "file", f.path(CertFile))
	}
	return nil
}

// checkTrusted returns an error unless every client trusts p.
func (f *Files) checkTrusted(ctx context.Context, p *certPair, now time.Time) error {
	bundles, err := f.trustedBundles(ctx)
	if err != nil {
		return err
	}
	for _, b := range bundles {
		f.addFormerAuthorities(parseTrusted(b.CABundle), now)
	}
	for _, b := range bundles {
		if !f.verifies(b, p, now) {
			return notTrustedError(b)
		}
	}
	return nil
}

func (f *Files) verifies(b TrustedBundle, p *certPair, now time.Time) bool {
	_, err := p.verify(parseTrusted(b.CABundle), f.opts.Name, now)
	return err == nil
}

func notTrustedError(b TrustedBundle) error {
	return fmt.Errorf("the caBundle of %s does not verify it yet; the leader adds %s once its pod has the same files", b.Where, CAFile)
}

func (f *Files) trustedBundles(ctx context.Context) ([]TrustedBundle, error) {
	ctx, cancel := context.WithTimeout(ctx, trustedBundlesTimeout)
	defer cancel()
	bundles, err := f.opts.TrustedBundle(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the CA bundles that API servers trust: %w", err)
	}
	return bundles, nil
}

// LoadTrusted reads the published bundles, and keeps their authorities in CABundle
// for one hour. Call it before CABundle is first published: the replica that
// published before may have had other files. It retries until it succeeds or ctx
// ends; Problem returns its error meanwhile.
func (f *Files) LoadTrusted(ctx context.Context) {
	if f.opts.TrustedBundle == nil {
		return
	}
	_ = wait.PollUntilContextCancel(ctx, pendingPoll, true, func(ctx context.Context) (bool, error) {
		bundles, err := f.trustedBundles(ctx)
		if previous := f.loadTrustedErr.Swap(&err); err != nil && previous == nil {
			f.opts.Log.Error(err, "cannot read the CA bundles that API servers trust; webhook configurations are not updated")
		}
		for _, b := range bundles {
			f.addFormerAuthorities(parseTrusted(b.CABundle), f.opts.Clock.Now())
		}
		return err == nil, nil
	})
}
