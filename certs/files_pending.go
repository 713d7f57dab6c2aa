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
	holdSettling = 10 * time.Second
	// holdLimit is how long a certificate is held at most: by then a kubelet has
	// brought the files to the leader, or something is broken that waiting does
	// not mend.
	holdLimit = 5 * time.Minute
	// holdPoll is how often clients' trust is read meanwhile.
	holdPoll = 2 * time.Second
	// standingTimeout ends a read of it that hangs.
	standingTimeout = 5 * time.Second
)

// TrustedBundle is a bundle that clients verify the server by just now.
type TrustedBundle struct {
	Where    string // it stands, for people
	CABundle []byte
}

// hold is a good pair that is not served before clients trust it. It is
// immutable.
type hold struct {
	pair    *pair
	since   time.Time // zero for no limit: serving it would help nobody
	trusted time.Time // since when they do; zero while they do not
	waits   error     // what for; nil once they do
}

// over reports whether the pair is to be served.
func (h *hold) over(now time.Time) bool {
	return !h.trusted.IsZero() && now.Sub(h.trusted) >= holdSettling || !h.since.IsZero() && now.Sub(h.since) >= holdLimit
}

// note says what is held, and why.
func (h *hold) note(path string) error {
	switch {
	case h.waits == nil:
		return fmt.Errorf("%s: held until every API server trusts it, %s after its authority was published", path, holdSettling)
	case h.since.IsZero():
		return fmt.Errorf("%s: held until it is trusted: %w", path, h.waits)
	}
	return fmt.Errorf("%s: held until %s at most: %w", path, stamp(h.since.Add(holdLimit)), h.waits)
}

// passed books when the wait for trust was over.
func (h *hold) passed(now time.Time) {
	switch {
	case h.waits != nil:
		h.trusted = time.Time{}
	case h.trusted.IsZero():
		h.trusted = now
	}
}

// holding returns the hold on p, nil if it is to be served. Nothing is held that
// is trusted wherever what is served now is, and nothing while what is served is
// expired.
func (f *Files) holding(ctx context.Context, p *pair, now time.Time) *hold {
	if f.opts.TrustedBundle == nil || len(p.ca) == 0 {
		return nil
	}
	before := f.held.Load()
	if before != nil && !p.sameLeaf(before.pair) {
		before = nil
	}
	serving := f.serving.Load()
	var h *hold
	switch {
	case serving == nil:
		h = f.starting(ctx, p, before, now)
	case now.After(serving.tls.Leaf.NotAfter) || p.sameLeaf(serving) || p.succeeds(serving, f.opts.Name, now):
	default:
		h = f.replacing(ctx, p, before, now)
	}
	if h != nil && before == nil {
		f.opts.Log.Info("holding a new certificate", "why", h.note(f.path(CertFile)).Error(), "serving", f.served())
	}
	return h
}

// starting returns the hold on the first pair of a replica. It is held where it is
// known that no client trusts it: others answer, or nobody could. If this replica
// leads, it has it trusted by itself.
func (f *Files) starting(ctx context.Context, p *pair, before *hold, now time.Time) *hold {
	standing, err := f.standing(ctx)
	if err != nil {
		return before
	}
	h := &hold{pair: p}
	if len(standing) > 0 && !slices.ContainsFunc(standing, func(s TrustedBundle) bool { return f.verifies(s, p, now) }) {
		h.waits = unverified(standing[0])
	}
	if before == nil && h.waits == nil {
		return nil // it stands there since before this replica began
	}
	if before != nil {
		h.trusted = before.trusted
	}
	h.passed(now)
	if h.over(now) {
		return nil
	}
	return h
}

// replacing returns the hold on a pair that another one is served before.
func (f *Files) replacing(ctx context.Context, p *pair, before *hold, now time.Time) *hold {
	h := &hold{pair: p, since: now, waits: f.untrusted(ctx, p, now)}
	if before != nil {
		h.since, h.trusted = before.since, before.trusted
	}
	h.passed(now)
	if !h.over(now) {
		return h
	}
	if h.waits != nil {
		f.opts.Log.Error(h.waits, "a certificate was held for as long as it may be, and calls may fail now", "file", f.path(CertFile))
	}
	return nil
}

// untrusted returns why not every client trusts p.
func (f *Files) untrusted(ctx context.Context, p *pair, now time.Time) error {
	standing, err := f.standing(ctx)
	if err != nil {
		return err
	}
	for _, s := range standing {
		f.adopt(trustedIn(s.CABundle), now)
	}
	for _, s := range standing {
		if !f.verifies(s, p, now) {
			return unverified(s)
		}
	}
	return nil
}

func (f *Files) verifies(s TrustedBundle, p *pair, now time.Time) bool {
	_, err := p.verify(trustedIn(s.CABundle), f.opts.Name, now)
	return err == nil
}

func unverified(s TrustedBundle) error {
	return fmt.Errorf("the caBundle of %s does not verify it yet: the leader adds %s to it once the same files are mounted there", s.Where, CAFile)
}

func (f *Files) standing(ctx context.Context) ([]TrustedBundle, error) {
	ctx, cancel := context.WithTimeout(ctx, standingTimeout)
	defer cancel()
	standing, err := f.opts.TrustedBundle(ctx)
	if err != nil {
		return nil, fmt.Errorf("find out which authorities API servers trust: %w", err)
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
	_ = wait.PollUntilContextCancel(ctx, holdPoll, true, func(ctx context.Context) (bool, error) {
		standing, err := f.standing(ctx)
		if before := f.forgot.Swap(&err); err != nil && before == nil {
			f.opts.Log.Error(err, "the webhook configurations are not written before that is known")
		}
		for _, s := range standing {
			f.adopt(trustedIn(s.CABundle), f.opts.Clock.Now())
		}
		return err == nil, nil
	})
}
