package certs

import (
	"crypto/x509"
	"slices"
	"time"
)

// A new authority goes through phases. Each is recorded in the Secret before it
// takes effect, so that a crash at any time loses nothing:
//
//	phase    signs   trusted (ca-bundle.crt)  ends when
//	stable   old     old                      two thirds of old's lifetime are over
//	staged   old     old, new                 the bundle is published (Published), or after a twelfth of its life
//	retiring new     new, old                 the last leaf that old may have signed has expired
//	stable   new     new
//
// Two invariants make this lossless. A leaf is signed only with the signer of a
// Secret that was read after the leaf's issue time, so the leaves of old expire at
// most one leaf lifetime after new was promoted. And a leaf is served only if the
// bundle of this replica contains its issuer.

// rotationRules decide when an authority is replaced.
type rotationRules struct {
	name                        string
	caValidity, leafValidity    time.Duration
	publishTimeout, propagation time.Duration
}

// localState is what one replica knows in addition to the Secret.
type localState struct {
	now       time.Time
	lastState state               // the Secret as this replica last applied it
	published []*x509.Certificate // the authorities that clients trust
	confirmed observation         // of the Secret's publishedAt
}

// observation is when this replica first observed a time that the Secret records.
// That time is from the clock of another replica, so durations are measured from
// the observation, by the local clock.
type observation struct{ value, observedAt time.Time }

func (s observation) observe(of, now time.Time) observation {
	if s.value.Equal(of) {
		return s
	}
	return observation{of, now}
}

// step is a change that plan makes, as it is logged.
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

// draft is the state that plan works on.
type draft struct {
	rotationRules
	localState
	state
	steps []step
}

// plan returns the state that the Secret should record, given the one that it
// records. It has no side effects, apart from the generation of keys, and is
// idempotent: with its own result and the same time it changes nothing.
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

// normalize fills in missing values. A missing time is set to now, the latest that
// it can have been.
func (d *draft) normalize() {
	// It is raised before anything is signed for longer, and lowered by a promotion.
	d.state.leafValidity = max(d.state.leafValidity, d.rotationRules.leafValidity)
	if d.next != nil && d.stagedAt.IsZero() {
		d.stagedAt = d.now
	}
	if len(d.retired) > 0 && d.retiredUntil.IsZero() {
		d.state = d.retire(d.now)
	}
	if len(d.retired) == 0 && !d.retiredUntil.IsZero() { // removed from the bundle
		d.state = d.retire(d.now, d.lastState.retired...)
	}
}

// dropExpired removes authorities of which no certificate can be valid any more.
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

// ensureSigner finds an authority to sign with if the Secret has none: first the
// one in memory, which clients trust already, then the staged one, which they may
// trust, else a new one.
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

// restore writes the authority in memory to the Secret, and stages a new one:
// the key may be known to the one who deleted or edited the Secret.
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
	created, err := newSigner(d.name, d.caValidity, d.now)
	if err != nil {
		return err
	}
	d.current = created
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
	created, err := newSigner(d.name, d.caValidity, d.now)
	if err != nil {
		return err
	}
	d.next, d.stagedAt, d.publishedAt = created, d.now, time.Time{}
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

// promotionAt is when the staged authority of s starts to sign: a propagation delay
// after the bundle with it was published, or publishTimeout after staging if that
// is not confirmed. At the latest it is when a quarter is left of the time that
// the current one had at staging: its leaves expire with it, and there must be
// time to replace them.
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

// nextAt is the next time at which plan may change s.
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
