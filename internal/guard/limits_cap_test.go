package guard

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	api "overrule.dev/overrule/api/v1alpha1"
)

func TestOfASortOfFindingsAboutLimitsTwentyAreToldAndTheOthersCounted(t *testing.T) {
	var ev evaluation
	denied := limitSort{nil, api.ReasonTriggerUnmatched, api.Deny, "more limits that bind to no rule"}
	warned := limitSort{nil, api.ReasonTriggerUnmatched, api.Warn, "more limits that bind to no rule"}
	made := 0
	for i := range 25 {
		ev.tellLimit(warned, func() Finding { made++; return Finding{What: fmt.Sprintf("limit %02d", i)} })
	}
	ev.tellLimit(denied, func() Finding { return Finding{What: "a denial"} })
	ev.heldBack()

	assert.Equal(t, 20, made, "what is not told is not made")
	assert.Equal(t, []Finding{{Code: api.ReasonTriggerUnmatched, Action: api.Deny, What: "a denial"}}, ev.findings.withAction(api.Deny),
		"a denial is told, however many warnings there are")
	told := ev.findings.withAction(api.Warn)
	assert.Len(t, told, 21)
	assert.Contains(t, told, Finding{Code: api.ReasonTriggerUnmatched, Action: api.Warn, What: "limit 19"})
	assert.Contains(t, told, Finding{Code: api.ReasonTriggerUnmatched, Action: api.Warn, What: "more limits that bind to no rule: 5"})
}
