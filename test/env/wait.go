package env

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	// Patience is the time limit of everything that a test waits for. It ends a test
	// that hangs, and is no assertion: a busy machine takes a tenth of it.
	Patience = 3 * time.Minute
	// Poll is the interval at which a test asks again where it cannot watch: waiting
	// must not load the machine that the test waits for.
	Poll = 250 * time.Millisecond
)

// Soon waits until a condition is met, and fails the test with the message if that
// takes longer than Patience. It is called on the goroutine of the test, at once and
// then every Poll.
func Soon(tb testing.TB, condition func() bool, message string, args ...any) {
	tb.Helper()
	deadline := time.Now().Add(Patience)
	for {
		began := time.Now()
		if condition() {
			return
		}
		if time.Now().After(deadline) {
			require.FailNow(tb, "condition not met in "+Patience.String(), append([]any{message}, args...)...)
		}
		select {
		case <-tb.Context().Done():
			require.FailNow(tb, "the test has ended", append([]any{message}, args...)...)
		// A condition that runs kubectl would take half of a CPU otherwise.
		case <-time.After(max(Poll, 3*time.Since(began))):
		}
	}
}

// Long skips a test with -short: it takes long, or few changes can break it. It belongs
// to one of the long parts (hack/long).
func Long(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("runs in a long part")
	}
}
