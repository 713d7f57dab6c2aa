package certs

import (
	"context"
	"fmt"
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

// Standing is a bundle that clients verify the server by just now.
type Standing struct {
	Where    string // it stands, for people
	CABundle []byte
}

// hold is a good pair that is not served before clients trust it. It is
// immutable.
type hold struct {
	pair    *pair
	since   time.Time
	trusted time.Time // since when they do; zero while they do not
	waits   error     // what for; nil once they do
}

// over reports whether the pair is to be served.
func (h *hold) over(now time.Time) bool {
	return !h.trusted.IsZero() && now.Sub(h.trusted) >= holdSettling || now.Sub(h.since) >= holdLimit
}

// note says what is held, and why.
func (h *hold) note(path string) error {
	until := stamp(h.since.Add(holdLimit))
	if h.waits == nil {
		return fmt.Errorf("%s: held until every API server trusts it, %s after its authority was published", path, holdSettling)
	}
	return fmt.Errorf("%s: held until %s at most: %w", path, until, h.waits)
}

// holding returns the hold on p, nil if it is to be served. Nothing is held that
// is trusted wherever what is served now is, and nothing while what is served is
// expired. A replica that starts serves nothing yet: others answer while it waits
// for what it begins with to be trusted.
func (f *Files) holding(ctx context.Context, p *pair, now time.Time) *hold {
	serving := f.serving.Load()
	if f.opts.Standing == nil || len(p.ca) == 0 || serving != nil &&
		(now.After(serving.tls.Leaf.NotAfter) || p.sameLeaf(serving) || p.succeeds(serving, f.opts.Name, now)) {
		return nil
	}
	h := &hold{pair: p, since: now, waits: f.untrusted(ctx, p, now)}
	before := f.held.Load()
	if serving == nil && before == nil && h.waits == nil {
		return nil // it stands there since before this replica began
	}
	if before != nil && p.sameLeaf(before.pair) {
		h.since, h.trusted = before.since, before.trusted
	} else {
		before = nil
	}
	switch {
	case h.waits != nil:
		h.trusted = time.Time{}
	case h.trusted.IsZero():
		h.trusted = now
	}
	if !h.over(now) {
		if before == nil {
			f.opts.Log.Info("holding a new certificate", "why", h.note(f.path(CertFile)).Error(), "serving", f.served())
		}
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
		if _, err := p.verify(trustedIn(s.CABundle), f.opts.Name, now); err != nil {
			return fmt.Errorf("the caBundle of %s does not verify it yet: the leader adds %s to it once the same files are mounted there", s.Where, CAFile)
		}
	}
	return nil
}

func (f *Files) standing(ctx context.Context) ([]Standing, error) {
	ctx, cancel := context.WithTimeout(ctx, standingTimeout)
	defer cancel()
	standing, err := f.opts.Standing(ctx)
	if err != nil {
		return nil, fmt.Errorf("find out which authorities API servers trust: %w", err)
	}
	return standing, nil
}

// Recall learns what clients trust just now, and has CABundle tell it for an
// hour beside what the files have. Call it before the bundle is first written
// over what another replica wrote, who may have had other files. It tries until
// that is known or ctx ends, and Problem says what it fails at.
func (f *Files) Recall(ctx context.Context) {
	if f.opts.Standing == nil {
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
