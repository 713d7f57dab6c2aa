package v1alpha1_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	api "overrule.dev/overrule/api/v1alpha1"
)

// The table of GEP-713: a policy that is not accepted has no condition Programmed.
func TestConditionsOfAState(t *testing.T) {
	for state, want := range map[api.State]string{
		api.Enforced:          "Accepted=True/Accepted Programmed=True/Programmed",
		api.PartiallyEnforced: "Accepted=True/Accepted Programmed=True/PartiallyProgrammed",
		api.Overridden:        "Accepted=True/Accepted Programmed=False/Overridden",
		api.NoPath:            "Accepted=True/Accepted Programmed=False/NoPath",
		api.Inactive:          "Accepted=True/Accepted Programmed=False/Inactive",
		api.Unreached:         "Accepted=True/Accepted Programmed=False/Unreached",
		api.Conflicted:        "Accepted=False/Conflicted",
		api.Invalid:           "Accepted=False/Invalid",
		api.TargetNotFound:    "Accepted=False/TargetNotFound",
	} {
		var got string
		for _, c := range state.Conditions() {
			if got != "" {
				got += " "
			}
			got += fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason)
		}
		assert.Equal(t, want, got, state)
	}
}
