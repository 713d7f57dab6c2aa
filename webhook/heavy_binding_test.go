package webhook

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"

	"overrule.dev/overrule/test/worlds"
)

// bindings returns the heavy cases of limits that bind to rules of routes, at a size at
// which more is wrong than is reported.
func bindings(t *testing.T) map[string]func(limits int) (*testServer, []byte) {
	t.Helper()
	out := make(map[string]func(limits int) (*testServer, []byte))
	for _, c := range worlds.HeavyCases() {
		if !strings.HasPrefix(c.What, "bindings/") {
			continue
		}
		out[c.Name] = func(limits int) (*testServer, []byte) {
			size := worlds.Shape{Gateways: 1, Listeners: 1, Routes: c.Small.Routes, RouteRules: 16, Matches: 16, Rules: limits}
			objects, write := c.Build(t, size)
			review := write.Review(t, uid)
			return heavyServer(objects.Store, c.BlastRadius), review
		}
	}
	require.NotEmpty(t, out)
	return out
}

// most is how many findings of one sort are reported one by one, and mostSorts how many
// sorts a write brings at most; each has a sum.
const (
	mostTold  = 20
	mostSorts = 3
)

func TestHeavyLimitsAreTruncated(t *testing.T) {
	for name, build := range bindings(t) {
		t.Run(name, func(t *testing.T) {
			d, review := build(100)
			a := responseOf(t, d.post(t, PathValidate+"?timeout=100s", review))
			assert.LessOrEqual(t, lines(a), mostSorts*(mostTold+1))
			if !a.Allowed {
				return
			}
			assert.NotEmpty(t, a.Warnings)
		})
	}
}

// lines of a denial; one for each lost override is reported, which is how a writer knows
// whom to ask.
func lines(a *admissionv1.AdmissionResponse) int {
	if a.Result == nil {
		return 0
	}
	n := 0
	for line := range strings.Lines(a.Result.Message) {
		if !strings.HasPrefix(line, "OverrideEvaded: ") {
			n++
		}
	}
	return n
}

// Twice the limits are no more than two and a half times the work: what is allocated is
// counted, for time is another thing on each machine.
func TestHeavyLimitsAllocateLinearly(t *testing.T) {
	for name, build := range bindings(t) {
		t.Run(name, func(t *testing.T) {
			assert.LessOrEqual(t, float64(allocated(t, build, 200)), 2.5*float64(allocated(t, build, 100)))
		})
	}
}

// allocated counts what evaluating a write from cold allocates.
func allocated(t *testing.T, build func(limits int) (*testServer, []byte), limits int) uint64 {
	t.Helper()
	d, review := build(limits)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	a := responseOf(t, d.post(t, PathValidate+"?timeout=100s", review))
	runtime.ReadMemStats(&after)
	require.False(t, isTooMuch(a))
	return after.Mallocs - before.Mallocs
}
