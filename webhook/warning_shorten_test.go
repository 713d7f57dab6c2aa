package webhook

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/test/tables"
)

func TestShortenWords(t *testing.T) {
	for name, c := range tables.Read[map[string]struct {
		Line    string
		Longest int
		Want    string
	}](t, "testdata/tables/shortened-words.yaml") {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.Want, shortenWords(c.Line, c.Longest))
		})
	}
}
