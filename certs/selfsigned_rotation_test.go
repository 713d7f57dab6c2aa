package certs

import (
	"cmp"
	"crypto/x509"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/tables"
)

const hour = time.Hour

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// testRules are those of testdata/plan.yaml.
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

// plannedState is a state of testdata/plan.yaml.
type plannedState struct {
	Current, Next                                     string
	Retired                                           []string
	StagedAt, PublishedAt, RetiredUntil, LeafValidity float64
}

func TestPlan(t *testing.T) {
	authorities := map[string]*signer{"old": newTestSigner(t, epoch), "other": newTestSigner(t, at(50)), "young": newTestSigner(t, at(60))}
	for name, test := range tables.Read[map[string]struct {
		Found, Remembered *plannedState
		Now               float64
		Published         []string
		Want              plannedState
		Steps             []string
	}](t, "testdata/plan.yaml") {
		t.Run(name, func(t *testing.T) {
			know := localState{now: at(test.Now), lastState: test.Remembered.of(authorities)}
			for _, name := range test.Published {
				know.published = append(know.published, authorities[name].cert)
			}
			got, steps, err := testRules.plan(test.Found.of(authorities), know)
			require.NoError(t, err)
			var words []string
			for _, step := range steps {
				word, _, _ := strings.Cut(string(step), " ")
				words = append(words, word)
			}
			assert.Equal(t, test.Steps, words)
			test.Want.LeafValidity = 10
			assert.Equal(t, test.Want, drawn(got, authorities))

			again, steps, err := testRules.plan(got, know)
			require.NoError(t, err)
			assert.Empty(t, steps, "planned again")
			assert.Equal(t, test.Want, drawn(again, authorities), "planned again")
		})
	}
}

// of returns the state with these authorities. The leaves of a Secret are valid for ten hours
// by default.
func (p *plannedState) of(authorities map[string]*signer) state {
	if p == nil {
		return state{}
	}
	s := state{current: authorities[p.Current], next: authorities[p.Next], leafValidity: time.Duration(cmp.Or(p.LeafValidity, 10)) * hour}
	for _, name := range p.Retired {
		s.retired = append(s.retired, authorities[name].cert)
	}
	for to, hours := range map[*time.Time]float64{&s.stagedAt: p.StagedAt, &s.publishedAt: p.PublishedAt, &s.retiredUntil: p.RetiredUntil} {
		if hours != 0 {
			*to = at(hours)
		}
	}
	return s
}

func drawn(s state, authorities map[string]*signer) plannedState {
	name := func(cert *x509.Certificate) string {
		for name, signer := range authorities {
			if signer.cert.Equal(cert) {
				return name
			}
		}
		return "new"
	}
	hours := func(t time.Time) float64 {
		if t.IsZero() {
			return 0
		}
		return t.Sub(epoch).Hours()
	}
	p := plannedState{
		StagedAt: hours(s.stagedAt), PublishedAt: hours(s.publishedAt), RetiredUntil: hours(s.retiredUntil), LeafValidity: s.leafValidity.Hours(),
	}
	if s.current != nil {
		p.Current = name(s.current.cert)
	}
	if s.next != nil {
		p.Next = name(s.next.cert)
	}
	for _, cert := range s.retired {
		p.Retired = append(p.Retired, name(cert))
	}
	return p
}
