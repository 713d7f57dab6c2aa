package certs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// holdSettling is what a caBundle takes, once it is stored, to be in force on
	// every API server.
	bundlePropagation = 10 * time.Second
	// holdLimit is how long a certificate is held at most: by then a kubelet has
	// brought the files to the leader, or something is broken that waiting does
	// not mend.
	pendingTimeout = 5 * time.Minute
	// holdPoll is how often clients' trust is read meanwhile.
	pendingPoll = 2 * time.Second
	// standingTimeout ends a read of it that hangs.
	trustedBundlesTimeout = 5 * time.Second
)

// TrustedBundle is a bundle that clients verify the server by just now.
type TrustedBundle struct {
	Where    string // it stands, for people
	CABundle []byte
}

// hold is a good pair that is not served before clients trust it. It is
// immutable.
type pendingCert struct {
	pair         *certPair
	pendingSince time.Time // zero for no limit: serving it would help nobody
	trustedSince time.Time // since when they do; zero while they do not
	waitingFor   error     // what for; nil once they do
}

// over reports whether the pair is to be served.
func (h *pendingCert) ready(now time.Time) bool {
	return !h.trustedSince.IsZero() && now.Sub(h.trustedSince) >= bundlePropagation || !h.pendingSince.IsZero() && now.Sub(h.pendingSince) >= pendingTimeout
}

// note says what is held, and why.
func (h *pendingCert) reason(path string) error {
	switch {
	case h.waitingFor == nil:
		return fmt.Errorf("%s: waiting until every API server trusts it, %s after its CA was published", path, bundlePropagation)
	case h.pendingSince.IsZero():
		return fmt.Errorf("%s: waiting until clients trust it: %w", path, h.waitingFor)
	}
	return fmt.Errorf("%s: waiting until %s at most: %w", path, formatTime(h.pendingSince.Add(pendingTimeout)), h.waitingFor)
}

// passed books when the wait for trust was over.
func (h *pendingCert) observeTrust(now time.Time) {
	switch {
	case h.waitingFor != nil:
		h.trustedSince = time.Time{}
	case h.trustedSince.IsZero():
		h.trustedSince = now
	}
}

// holding returns the hold on p, nil if it is to be served. Nothing is held that
// is trusted wherever what is served now is, and nothing while what is served is
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
	var h *pendingCert
	switch {
	case serving == nil:
		h = f.pendingAtStart(ctx, p, previous, now)
	case now.After(serving.tls.Leaf.NotAfter) || p.sameLeaf(serving) || p.trustedWherever(serving, f.opts.Name, now):
	default:
		h = f.pendingReplacement(ctx, p, previous, now)
	}
	if h != nil && previous == nil {
		f.opts.Log.Info("new certificate is pending", "reason", h.reason(f.path(CertFile)).Error(), "serving", f.describeServed())
	}
	return h
}

// starting returns the hold on the first pair of a replica. It is held where it is
// known that no client trusts it: others answer, or nobody could. If this replica
// leads, it has it trusted by itself.
func (f *Files) pendingAtStart(ctx context.Context, p *certPair, previous *pendingCert, now time.Time) *pendingCert {
	standing, err := f.trustedBundles(ctx)
	if err != nil {
		return previous
	}
	h := &pendingCert{pair: p}
	if len(standing) > 0 && !slices.ContainsFunc(standing, func(s TrustedBundle) bool { return f.verifies(s, p, now) }) {
		h.waitingFor = notTrustedError(standing[0])
	}
	if previous == nil && h.waitingFor == nil {
		return nil // it stands there since before this replica began
	}
	if previous != nil {
		h.trustedSince = previous.trustedSince
	}
	h.observeTrust(now)
	if h.ready(now) {
		return nil
	}
	return h
}

// replacing returns the hold on a pair that another one is served before.
func (f *Files) pendingReplacement(ctx context.Context, p *certPair, previous *pendingCert, now time.Time) *pendingCert {
	h := &pendingCert{pair: p, pendingSince: now, waitingFor: f.checkTrusted(ctx, p, now)}
	if previous != nil {
		h.pendingSince, h.trustedSince = previous.pendingSince, previous.trustedSince
	}
	h.observeTrust(now)
	if !h.ready(now) {
		return h
	}
	if h.waitingFor != nil {
		f.opts.Log.Error(h.waitingFor, "serving a certificate that API servers may not trust; webhook calls may fail", "file", f.path(CertFile))
	}
	return nil
}

// untrusted returns why not every client trusts p.
func (f *Files) checkTrusted(ctx context.Context, p *certPair, now time.Time) error {
	standing, err := f.trustedBundles(ctx)
	if err != nil {
		return err
	}
	for _, s := range standing {
		f.addFormerAuthorities(parseTrusted(s.CABundle), now)
	}
	for _, s := range standing {
		if !f.verifies(s, p, now) {
			return notTrustedError(s)
		}
	}
	return nil
}

func (f *Files) verifies(s TrustedBundle, p *certPair, now time.Time) bool {
	_, err := p.verify(parseTrusted(s.CABundle), f.opts.Name, now)
	return err == nil
}

func notTrustedError(s TrustedBundle) error {
	return fmt.Errorf("the caBundle of %s does not verify it yet; the leader adds %s once its pod has the same files", s.Where, CAFile)
}

func (f *Files) trustedBundles(ctx context.Context) ([]TrustedBundle, error) {
	ctx, cancel := context.WithTimeout(ctx, trustedBundlesTimeout)
	defer cancel()
	standing, err := f.opts.TrustedBundle(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the CA bundles that API servers trust: %w", err)
	}
	return standing, nil
}

// LoadTrusted learns what clients trust just now, and has CABundle tell it for an
// hour beside what the files have. Call it before the bundle is first written
// over what another replica wrote, who may have had other files. It tries until
// that is known or ctx ends, and Problem says what it fails at.
func (f *Files) LoadTrusted(ctx context.Context) {
	if f.opts.TrustedBundle == nil {
		return
	}
	_ = wait.PollUntilContextCancel(ctx, pendingPoll, true, func(ctx context.Context) (bool, error) {
		standing, err := f.trustedBundles(ctx)
		if previous := f.loadTrustedErr.Swap(&err); err != nil && previous == nil {
			f.opts.Log.Error(err, "cannot read the CA bundles that API servers trust; webhook configurations are not updated")
		}
		for _, s := range standing {
			f.addFormerAuthorities(parseTrusted(s.CABundle), f.opts.Clock.Now())
		}
		return err == nil, nil
	})
}
