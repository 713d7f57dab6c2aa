package editdistance

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/test/tables"
)

func TestClosest(t *testing.T) {
	for name, c := range tables.Read[map[string]struct {
		Word string
		Of   []string
		Want string
	}](t, "testdata/tables/closest.yaml") {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.Want, Closest(c.Word, c.Of)) })
	}
}
