//go:build e2e

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestStory runs what make demo runs.
func TestStory(t *testing.T) {
	require.NoError(t, demo(t.Context(), t.Output(), painter{}, false))
}
