package ratelimit

import (
	"k8s.io/apimachinery/pkg/runtime"

	"overrule.dev/overrule/internal/decode"
	"overrule.dev/overrule/internal/gateway"
)

// Defaulted returns a copy of a limit with the defaults of the RFC and of Gateway API
// set, as the API server stores it: a limit from a file then equals the stored one.
// The value is decoded JSON, and is not edited.
func Defaulted(value any) any {
	limit, ok := runtime.DeepCopyJSONValue(value).(map[string]any)
	if !ok {
		return value
	}
	for _, rate := range decode.Objects(limit["rates"]) {
		if rate["duration"] == nil {
			rate["duration"] = int64(1)
		}
	}
	for _, trigger := range decode.Objects(limit["triggers"]) {
		for _, match := range decode.Objects(trigger["matches"]) {
			gateway.DefaultHTTPMatch(match)
		}
	}
	return limit
}
