package certs

import (
	"crypto/x509"
	"slices"
	"time"
)

// rules decide when an authority follows another.
type rotationRules struct {
	name                        string
	caValidity, leafValidity    time.Duration
	publishTimeout, propagation time.Duration
}

// knowledge is what one replica knows beside the Secret.
type localState struct {
	now       time.Time
	lastState state               // the Secret as this replica last acted on it
	published []*x509.Certificate // what clients were last seen to trust
	confirmed observation         // of the Secret's publishedAt
}

// sighting is when a replica first saw a moment that the Secret records. Another
// replica's clock wrote it: what has to pass since then is counted by one's own.
type observation struct{ value, observedAt time.Time }

func (s observation) observe(of, now time.Time) observation {
	if s.value.Equal(of) {
		return s
	}
	return observation{of, now}
}

// step is a change that a plan makes, for the log.
type step string

const (
	stepCreated   step = "created a new certificate authority"
	stepRestored  step = "restored the certificate authority from memory"
	stepStaged    step = "staged the next certificate authority"
	stepDiscarded step = "discarded a staged certificate authority that has expired"
	stepConfirmed step = "confirmed that the staged certificate authority is published"
	stepPromoted  step = "promoted the staged certificate authority to sign"
	stepDropped   step = "dropped retired certificate authorities from the bundle"
)

// draft is a state on its way to what it should be.
type draft struct {
	rotationRules
	localState
	state
	steps []step
}

// plan returns what the Secret should record, given what it does. It is pure
// but for the keys of new authorities, and idempotent: planned again at the
// same moment, its result stays as it is.
func (r rotationRules) plan(stored state, k localState) (state, []step, error) {
	d := &draft{rotationRules: r, localState: k, state: stored}
	d.normalize()
	d.dropExpired()
	if err := d.ensureSigner(); err != nil {
		return stored, nil, err
	}
	if err := d.stage(); err != nil {
		return stored, nil, err
	}
	d.confirm()
	d.promoteIfDue()
	return d.state, d.steps, nil
}

func (d *draft) record(s step) { d.steps = append(d.steps, s) }

// mend fills in what the Secret should say and does not: a moment that is
// missing counts from now, the latest it can have been.
func (d *draft) normalize() {
	// Raised before anything is signed for longer, and lowered by a promotion.
	d.state.leafValidity = max(d.state.leafValidity, d.rotationRules.leafValidity)
	if d.next != nil && d.stagedAt.IsZero() {
		d.stagedAt = d.now
	}
	if len(d.retired) > 0 && d.retiredUntil.IsZero() {
		d.state = d.retire(d.now)
	}
	if len(d.retired) == 0 && !d.retiredUntil.IsZero() { // the bundle lost them
		d.state = d.retire(d.now, d.lastState.retired...)
	}
}

// drop ends the trust in what is retired and has nothing alive.
func (d *draft) dropExpired() {
	previous := len(d.retired)
	over := !d.now.Before(d.retiredUntil)
	d.state = d.withoutRetired(func(cert *x509.Certificate) bool { return over || !d.now.Before(cert.NotAfter) })
	if len(d.retired) < previous {
		d.record(stepDropped)
	}
	if d.next != nil && !d.next.usable(d.now) {
		d.state = d.withoutNext()
		d.record(stepDiscarded)
	}
}

// ensureSigner finds an authority to sign with where the Secret gives none:
// this replica's own if it is good, for its clients trust it already; then the
// staged one, which they may; a new one last.
func (d *draft) ensureSigner() error {
	switch {
	case d.current.usable(d.now):
		return nil
	case d.lastState.current.usable(d.now):
		return d.restore()
	case d.next != nil:
		d.promote()
		return nil
	}
	return d.create()
}

// restore puts back the authority in memory. Whoever deleted or broke the
// Secret may have known the key, so a new one is staged to follow.
func (d *draft) restore() error {
	d.state.leafValidity = max(d.state.leafValidity, d.lastState.leafValidity)
	d.current = d.lastState.current
	d.state = d.withoutRetired(d.current.cert.Equal).retire(d.now, d.lastState.trusted()...)
	d.state = d.withoutRetired(func(cert *x509.Certificate) bool { return !d.now.Before(cert.NotAfter) })
	d.record(stepRestored)
	if d.next != nil {
		return nil
	}
	return d.stageNew()
}

func (d *draft) create() error {
	made, err := newSigner(d.name, d.caValidity, d.now)
	if err != nil {
		return err
	}
	d.current = made
	d.record(stepCreated)
	return nil
}

func (d *draft) stage() error {
	if d.next != nil || d.now.Before(renewalTime(d.current.cert)) {
		return nil
	}
	return d.stageNew()
}

func (d *draft) stageNew() error {
	made, err := newSigner(d.name, d.caValidity, d.now)
	if err != nil {
		return err
	}
	d.next, d.stagedAt, d.publishedAt = made, d.now, time.Time{}
	d.record(stepStaged)
	return nil
}

// confirm records that clients trust the staged authority.
func (d *draft) confirm() {
	if d.next == nil || !d.publishedAt.IsZero() || !slices.ContainsFunc(d.published, d.next.cert.Equal) {
		return
	}
	d.publishedAt = d.now
	d.record(stepConfirmed)
}

func (d *draft) promoteIfDue() {
	if d.next != nil && !d.now.Before(d.promotionAt(d.state, d.confirmed)) {
		d.promote()
	}
}

// promote makes the staged authority the one that signs.
func (d *draft) promote() {
	promoted, old := d.next, d.current
	d.state = d.withoutNext()
	d.current = promoted
	if old.usable(d.now) {
		d.state = d.retire(d.now, old.cert)
	}
	d.state.leafValidity = d.rotationRules.leafValidity
	d.record(stepPromoted)
}

// promotionAt is when the staged authority of s signs: once the bundle that
// holds it has been published and had time to spread, or after publishWait if
// nobody says that it was published. Either way while a quarter of the life is
// left that the signing one had when it was staged: its leaves end with it, and
// there must be time to replace them.
func (r rotationRules) promotionAt(s state, confirmed observation) time.Time {
	latest := s.stagedAt.Add(s.current.cert.NotAfter.Sub(s.stagedAt) * 3 / 4)
	if s.publishedAt.IsZero() {
		return earlier(s.stagedAt.Add(r.publishTimeout), latest)
	}
	since := s.publishedAt
	if confirmed.value.Equal(since) {
		since = later(since, confirmed.observedAt)
	}
	return earlier(since.Add(r.propagation), latest)
}

// nextAt is when s should next be planned by the clock alone.
func (r rotationRules) nextAt(s state, confirmed observation) time.Time {
	at := renewalTime(s.current.cert)
	if s.next != nil {
		at = r.promotionAt(s, confirmed)
	}
	if len(s.retired) > 0 {
		at = earlier(at, s.retiredUntil)
	}
	return at
}

// leafDue tells whether a replica that serves l must sign another under s.
func needsLeaf(l *leaf, s state, now time.Time) bool {
	return l == nil || !s.trusts(l.issuer) || !now.Before(l.renewAt)
}
