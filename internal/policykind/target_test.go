package policykind_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/test/messages"
	"overrule.dev/overrule/test/tables"
)

func ref(kind, namespace, name string) api.Ref {
	return api.Ref{Group: api.GatewayGroup, Kind: kind, Namespace: namespace, Name: name}
}

func TestReadInvalidTargets(t *testing.T) {
	tests := tables.Read[map[string]struct{ Spec, Want string }](t, "testdata/tables/read-invalid-targets.yaml")
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := spec(t, builtin(t, "RateLimitPolicy"), test.Spec)
			assert.Equal(t, test.Want, strings.Join(messages.Fields(t, p.Invalid), "; "))
		})
	}
}
