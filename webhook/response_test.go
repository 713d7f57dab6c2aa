package webhook

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/internal/inflight"
	"overrule.dev/overrule/internal/snapshot"
)

func TestJudgedOnAnnotation(t *testing.T) {
	for name, with := range map[string]func(*snapshot.Store) *inflight.Log{
		"by the store alone":          func(*snapshot.Store) *inflight.Log { return nil },
		"with what is in flight, too": func(s *snapshot.Store) *inflight.Log { return inflight.New(s, inflight.Options{}) },
	} {
		t.Run(name, func(t *testing.T) {
			s := snapshot.New()
			d := newTestServer(t, Options{Store: s, Replica: "overrule-5d8", InFlight: with(s)}, cluster, gatewayLimits)
			s.Passed("41")

			allowed := d.validated(t, create(t, routeLimits(20)))
			assert.True(t, allowed.Allowed)
			assert.Equal(t, "41 overrule-5d8", allowed.AuditAnnotations["evaluated-on"])
			assert.Contains(t, d.log.String(), `"evaluatedOn"=41`)

			s.Passed("1000000000000")
			denied := d.validated(t, create(t, routeLimits(100)))
			assert.False(t, denied.Allowed)
			assert.Equal(t, "1000000000000 overrule-5d8", denied.AuditAnnotations["evaluated-on"])
			assert.Contains(t, d.log.String(), `"evaluatedOn"=1000000000000`)

			assert.Empty(t, d.mutated(t, create(t, routeLimits(20))).AuditAnnotations, "it decides nothing")
		})
	}
}

func TestJudgedOnWithoutReplica(t *testing.T) {
	a := newTestServer(t, Options{}, cluster).validated(t, create(t, routeLimits(20)))
	assert.Equal(t, "0", a.AuditAnnotations["evaluated-on"])
}
