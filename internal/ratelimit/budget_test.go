package ratelimit

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func withPatterns(n int, pattern string) any {
	when := make([]any, n)
	for i := range when {
		when[i] = map[string]any{"selector": "auth.identity.group", "operator": "matches", "value": pattern}
	}
	return map[string]any{"rates": []any{map[string]any{"limit": int64(5), "unit": "second"}}, "when": when}
}

func TestBudget(t *testing.T) {
	kib := strings.Repeat("a", 1024)
	limits := field.NewPath("limits")
	b := new(Budget)
	_, errs := b.Validate(limits.Key("a"), "a", withPatterns(32, kib))
	assert.Empty(t, errs)
	_, errs = b.Validate(limits.Key("b"), "b", withPatterns(32, kib))
	assert.Empty(t, errs, "64 KiB in all")
	_, errs = b.Validate(limits.Key("c"), "c", withPatterns(64, "[")) // none of which is parsed
	assert.Equal(t, field.ErrorList{field.Invalid(limits.Key("c").Child("when").Index(0).Child("value"), "[",
		"all regular expressions of a policy must have at most 65536 bytes together; move limits to another policy")}, errs)
	_, errs = b.Validate(limits.Key("d"), "d", withPatterns(0, ""))
	assert.Empty(t, errs, "one without expressions takes nothing")
	_, errs = read(limits.Key("c"), "c", withPatterns(1, "a*"))
	assert.Empty(t, errs, "another policy has its own")
}
