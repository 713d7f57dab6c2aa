package test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The page on limits has a link to the file of each example.
func TestLimitsPageLinksExamples(t *testing.T) {
	page := content(t, "docs/ratelimitpolicy.md")
	files, err := filepath.Glob("../examples/ratelimitpolicy/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		switch name := filepath.Base(file); name {
		case "network.yaml", "3-route.yaml", "4-route.yaml": // used by the others
			assert.Contains(t, page, name)
		default:
			assert.Contains(t, page, "(../examples/ratelimitpolicy/"+name+")")
		}
	}
}
