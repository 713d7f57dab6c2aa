package env

import "testing"

// Long leaves a test to make test-all: it takes long, or is about what few changes
// touch. CONTRIBUTING.md has a table of what runs where.
func Long(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("runs in make test-all")
	}
}
