package ratelimit

import (
	"k8s.io/apimachinery/pkg/runtime"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// Defaulted returns a copy of a limit with the defaults of the RFC and of Gateway API
// set, as the API server stores it: a limit from a file then equals the stored one.
// The value is decoded JSON, and is not edited.
func Defaulted(value any) any {
	limit, ok := runtime.DeepCopyJSONValue(value).(map[string]any)
	if !ok {
		return value
	}
	for _, rate := range objects(limit["rates"]) {
		setDefault(rate, "duration", int64(1))
	}
	for _, trigger := range objects(limit["triggers"]) {
		for _, match := range objects(trigger["matches"]) {
			if path, ok := match["path"].(map[string]any); ok {
				setDefault(path, "type", string(gatewayv1.PathMatchPathPrefix))
				setDefault(path, "value", "/")
			}
			for _, header := range objects(match["headers"]) {
				setDefault(header, "type", string(gatewayv1.HeaderMatchExact))
			}
			for _, parameter := range objects(match["queryParams"]) {
				setDefault(parameter, "type", string(gatewayv1.QueryParamMatchExact))
			}
		}
	}
	return limit
}

// objects returns the items of a list that are objects.
func objects(list any) []map[string]any {
	var out []map[string]any
	items, _ := list.([]any)
	for _, item := range items {
		if object, ok := item.(map[string]any); ok {
			out = append(out, object)
		}
	}
	return out
}

func setDefault(object map[string]any, name string, value any) {
	if object[name] == nil {
		object[name] = value
	}
}
