package limits

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	api "overrule.dev/overrule/api/v1alpha1"
)

func TestTwentyFindingsOfAGroupAreReportedAndTheOthersCounted(t *testing.T) {
	var tracker Tracker
	denied := group{nil, api.ReasonTriggerUnmatched, api.Deny, "more limits that bind to no rule"}
	warned := group{nil, api.ReasonTriggerUnmatched, api.Warn, "more limits that bind to no rule"}
	built := 0
	for i := range 25 {
		tracker.report(warned, func() Finding { built++; return Finding{What: fmt.Sprintf("limit %02d", i)} })
	}
	tracker.report(denied, func() Finding { return Finding{What: "a denial"} })
	tracker.reportOmitted()

	assert.Equal(t, 20, built, "findings that are only counted are not built")
	assert.Contains(t, tracker.findings, Finding{Code: api.ReasonTriggerUnmatched, Action: api.Deny, What: "a denial"},
		"a denial is reported, however many warnings there are")
	warnings := slices.DeleteFunc(tracker.findings, func(f Finding) bool { return f.Action == api.Deny })
	assert.Len(t, warnings, 21)
	assert.Contains(t, warnings, Finding{Code: api.ReasonTriggerUnmatched, Action: api.Warn, What: "limit 19"})
	assert.Contains(t, warnings, Finding{Code: api.ReasonTriggerUnmatched, Action: api.Warn, What: "more limits that bind to no rule: 5"})
}
