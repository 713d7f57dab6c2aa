package env

import "testing"

// Long skips a test with -short: it takes long, or few changes can break it.
// CONTRIBUTING.md has a table of what runs where.
func Long(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("runs in make test-all")
	}
}
