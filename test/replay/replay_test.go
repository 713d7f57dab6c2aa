package replay

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"overrule.dev/overrule/test/tables"
)

func TestFindings(t *testing.T) {
	for name, c := range tables.Read[map[string]struct{ Before, Writes, Want []string }](t, "testdata/histories.yaml") {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, append([]string{"base"}, c.Before...)...)
			began := s.version
			for _, what := range c.Writes {
				s.write(what)
			}
			var found []string
			for _, f := range s.replay().Findings {
				found = append(found, fmt.Sprintf("%s %s %d %v", f.Operation, f.Ref, f.Version-began, f.Codes))
			}
			assert.ElementsMatch(t, c.Want, found)
		})
	}
}

func TestReportCounts(t *testing.T) {
	s := newStory(t, "base")
	for _, what := range []string{"above", "below", "above with a status"} {
		s.write(what)
	}
	report := s.replay()
	assert.Equal(t, []int{3, 2, 1}, []int{report.Writes, report.Evaluated, len(report.Findings)})
	assert.Contains(t, report.Findings[0].String(), "both limits are set")
}
