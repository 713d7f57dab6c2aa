package certs

import (
	"crypto/x509"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const hour = time.Hour

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// testRules: an authority is valid from hour -1 to hour 90 and is replaced at about
// hour 60; a leaf is valid for 10 hours, with three of clock skew.
var testRules = rotationRules{name: "ca", caValidity: 90 * hour, leafValidity: 10 * hour, publishTimeout: 8 * hour, propagation: hour}

func newTestSigner(t *testing.T, at time.Time) *signer {
	t.Helper()
	s, err := newSigner("ca", testRules.caValidity, at)
	require.NoError(t, err)
	return s
}

func at(hours float64) time.Time {
	return epoch.Add(time.Duration(hours * float64(hour)).Round(time.Second))
}

func TestPlan(t *testing.T) {
	made := newTestSigner(t, epoch) // stands for one that plan creates
	old, young, other := newTestSigner(t, epoch), newTestSigner(t, at(60)), newTestSigner(t, at(50))
	draw := nameStates(map[*signer]string{old: "old", young: "young", other: "other"})
	stable := state{current: old, leafValidity: 10 * hour}
	staged := state{current: old, next: young, stagedAt: at(60), leafValidity: 10 * hour}
	confirmed := staged
	confirmed.publishedAt = at(61)
	retiring := state{current: young, retired: []*x509.Certificate{old.cert}, retiredUntil: at(75), leafValidity: 10 * hour}

	tests := map[string]struct {
		found state
		know  localState
		want  state
		steps []step
	}{
		"nothing stored: a new authority": {
			know:  localState{now: epoch},
			want:  state{current: made, leafValidity: 10 * hour},
			steps: []step{stepCreated},
		},
		"recent: no change": {
			found: stable, know: localState{now: at(59)}, want: stable,
		},
		"past two thirds of its lifetime: the next is staged": {
			found: stable, know: localState{now: at(60)},
			want:  state{current: old, next: made, stagedAt: at(60), leafValidity: 10 * hour},
			steps: []step{stepStaged},
		},
		"staged and not published: it does not sign": {
			found: staged, know: localState{now: at(67.9), published: []*x509.Certificate{old.cert}}, want: staged,
		},
		"staged and published: recorded, and not signing before it is propagated": {
			found: staged, know: localState{now: at(61), published: []*x509.Certificate{young.cert, old.cert}}, want: confirmed,
			steps: []step{stepConfirmed},
		},
		"published and not propagated yet: waits": {
			found: confirmed, know: localState{now: at(61.9)}, want: confirmed,
		},
		"published and observed again: the first time counts": {
			found: confirmed, know: localState{now: at(61.9), published: []*x509.Certificate{young.cert}}, want: confirmed,
		},
		"published and propagated: it signs, and the old one stays for one leaf lifetime and the clock skew": {
			found: confirmed, know: localState{now: at(62)}, want: retiring,
			steps: []step{stepPromoted},
		},
		"never published: it signs after the long wait": {
			found: staged, know: localState{now: at(68)},
			want:  state{current: young, retired: []*x509.Certificate{old.cert}, retiredUntil: at(81), leafValidity: 10 * hour},
			steps: []step{stepPromoted},
		},
		"staged late: it signs while a quarter of the rest is left": {
			found: state{current: old, next: young, stagedAt: at(86), leafValidity: 10 * hour}, know: localState{now: at(89)},
			want:  state{current: young, retired: []*x509.Certificate{old.cert}, retiredUntil: at(102), leafValidity: 10 * hour},
			steps: []step{stepPromoted},
		},
		"a leaf of the retired one may be valid: it stays trusted": {
			found: retiring, know: localState{now: at(72.9)}, want: retiring,
		},
		"no leaf of the retired one can be valid: it is removed": {
			found: retiring, know: localState{now: at(75)},
			want:  state{current: young, leafValidity: 10 * hour},
			steps: []step{stepDropped},
		},
		"retired and expired: it is removed early": {
			found: state{current: young, retired: []*x509.Certificate{old.cert}, retiredUntil: at(99), leafValidity: 10 * hour},
			know:  localState{now: at(90)},
			want:  state{current: young, leafValidity: 10 * hour},
			steps: []step{stepDropped},
		},
		"leaves that live longer than recorded: recorded first": {
			found: state{current: old, leafValidity: hour}, know: localState{now: at(1)}, want: stable,
		},
		"another replica's longer leaves: respected until the promotion, and in it": {
			found: state{current: old, next: young, stagedAt: at(60), publishedAt: at(61), leafValidity: 20 * hour}, know: localState{now: at(62)},
			want:  state{current: young, retired: []*x509.Certificate{old.cert}, retiredUntil: at(85), leafValidity: 10 * hour},
			steps: []step{stepPromoted},
		},
		"expired with a staged one: that one signs at once": {
			found: staged, know: localState{now: at(90)},
			want:  state{current: young, leafValidity: 10 * hour},
			steps: []step{stepPromoted},
		},
		"expired with nothing staged: a new one": {
			found: stable, know: localState{now: at(90)},
			want:  state{current: made, leafValidity: 10 * hour},
			steps: []step{stepCreated},
		},
		"staged and expired: discarded, and another one staged": {
			found: state{current: young, next: old, stagedAt: at(60), leafValidity: 10 * hour}, know: localState{now: at(121)},
			want:  state{current: young, next: made, stagedAt: at(121), leafValidity: 10 * hour},
			steps: []step{stepDiscarded, stepStaged},
		},
		"deleted, and still in memory: restored, with a new one staged": {
			know:  localState{now: at(5), lastState: stable},
			want:  state{current: old, next: made, stagedAt: at(5), leafValidity: 10 * hour},
			steps: []step{stepRestored, stepStaged},
		},
		"deleted in a rotation: what was trusted stays trusted, and the staged key is not used again": {
			know: localState{now: at(64), lastState: staged},
			want: state{current: old, next: made, stagedAt: at(64), retired: []*x509.Certificate{young.cert},
				retiredUntil: at(77), leafValidity: 10 * hour},
			steps: []step{stepRestored, stepStaged},
		},
		"current unreadable, memory good, one staged: restored, the staged one as it was": {
			found: state{next: young, retired: []*x509.Certificate{old.cert}, stagedAt: at(60), leafValidity: 10 * hour},
			know:  localState{now: at(61), lastState: staged},
			want:  staged,
			steps: []step{stepRestored},
		},
		"current unreadable, no memory, one staged: the staged one signs, the lost one stays trusted": {
			found: state{next: young, retired: []*x509.Certificate{old.cert}, stagedAt: at(60), leafValidity: 10 * hour},
			know:  localState{now: at(62)},
			want:  retiring,
			steps: []step{stepPromoted},
		},
		"current unreadable, no memory: a new one, the lost one stays trusted": {
			found: state{retired: []*x509.Certificate{old.cert}, leafValidity: 10 * hour}, know: localState{now: at(62)},
			want:  state{current: made, retired: []*x509.Certificate{old.cert}, retiredUntil: at(75), leafValidity: 10 * hour},
			steps: []step{stepCreated},
		},
		"replaced by an older one that has expired: memory wins": {
			found: stable, know: localState{now: at(91), lastState: state{current: young, leafValidity: 10 * hour}},
			want:  state{current: young, next: made, stagedAt: at(91), leafValidity: 10 * hour},
			steps: []step{stepRestored, stepStaged},
		},
		"replaced by another valid one: that one is used": {
			found: state{current: other, leafValidity: 10 * hour}, know: localState{now: at(62), lastState: stable},
			want: state{current: other, leafValidity: 10 * hour},
		},
		"no time of staging recorded: now": {
			found: state{current: old, next: young, leafValidity: 10 * hour}, know: localState{now: at(70)},
			want: state{current: old, next: young, stagedAt: at(70), leafValidity: 10 * hour},
		},
		"the bundle lost the retired one: back from memory": {
			found: state{current: young, retiredUntil: at(75), leafValidity: 10 * hour}, know: localState{now: at(65), lastState: retiring},
			want: state{current: young, retired: []*x509.Certificate{old.cert}, retiredUntil: at(78), leafValidity: 10 * hour},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, steps, err := testRules.plan(test.found, test.know)
			require.NoError(t, err)
			assert.Equal(t, test.steps, steps)
			assert.Equal(t, draw(test.want), draw(got))

			again, steps, err := testRules.plan(got, test.know)
			require.NoError(t, err)
			assert.Empty(t, steps, "planned again")
			assert.Equal(t, draw(got), draw(again), "planned again")
		})
	}
}

// namedState is a state with names of its authorities, "new" for unknown ones.
type namedState struct {
	current, next                       string
	retired                             []string
	stagedAt, publishedAt, retiredUntil time.Time
	leafValidity                        time.Duration
}

func nameStates(names map[*signer]string) func(state) namedState {
	named := func(cert *x509.Certificate) string {
		for signer, name := range names {
			if signer.cert.Equal(cert) {
				return name
			}
		}
		return "new"
	}
	return func(s state) namedState {
		p := namedState{stagedAt: s.stagedAt, publishedAt: s.publishedAt, retiredUntil: s.retiredUntil, leafValidity: s.leafValidity}
		if s.current != nil {
			p.current = named(s.current.cert)
		}
		if s.next != nil {
			p.next = named(s.next.cert)
		}
		for _, cert := range s.retired {
			p.retired = append(p.retired, named(cert))
		}
		return p
	}
}
