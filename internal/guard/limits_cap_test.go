package guard

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	api "overrule.dev/overrule/api/v1alpha1"
)

func TestOfASortOfFindingsAboutLimitsTwentyAreToldAndTheOthersCounted(t *testing.T) {
	var j judge
	denied := limitSort{nil, api.ReasonTriggerUnmatched, api.Deny, "more limits that bind to no rule"}
	warned := limitSort{nil, api.ReasonTriggerUnmatched, api.Warn, "more limits that bind to no rule"}
	made := 0
	for i := range 25 {
		j.tellLimit(warned, func() Finding { made++; return Finding{What: fmt.Sprintf("limit %02d", i)} })
	}
	j.tellLimit(denied, func() Finding { return Finding{What: "a denial"} })
	j.heldBack()

	assert.Equal(t, 20, made, "what is not told is not made")
	assert.Equal(t, []Finding{{Code: api.ReasonTriggerUnmatched, Action: api.Deny, What: "a denial"}}, j.found.by(api.Deny),
		"a denial is told, however many warnings there are")
	told := j.found.by(api.Warn)
	assert.Len(t, told, 21)
	assert.Contains(t, told, Finding{Code: api.ReasonTriggerUnmatched, Action: api.Warn, What: "limit 19"})
	assert.Contains(t, told, Finding{Code: api.ReasonTriggerUnmatched, Action: api.Warn, What: "more limits that bind to no rule: 5"})
}
