package guard

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEventNoteIsTruncated(t *testing.T) {
	assert.Equal(t, "a; b", EventNote("a\nb"))
	exact := strings.Repeat("x", 1024)
	assert.Equal(t, exact, EventNote(exact))
	long := EventNote(strings.Repeat("é", 600))
	assert.Equal(t, strings.Repeat("é", 510)+" …", long, "no rune is cut in two")
	require.LessOrEqual(t, len(long), 1024)
}
