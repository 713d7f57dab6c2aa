package ratelimit

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// What is short and slow to compile is counted as what it takes: 64 expressions of
// a kilobyte took 9 seconds.
func TestExpressionsThatAreSlowToCompileAreRejected(t *testing.T) {
	slow := "(?i)[" + strings.Repeat("b-\U0010fffe", 169) + "]"
	err := checkRegexp(field.NewPath("value"), slow)
	require.NotNil(t, err)
	assert.Contains(t, err.Error(), "takes too long to compile; use fewer classes of Unicode")

	one := "(?i)[b-\U0010fffe]"
	require.Nil(t, checkRegexp(field.NewPath("value"), one))
	b, n := NewBudget(), 0
	for b.take(one) {
		n++
	}
	assert.Equal(t, 16, n, "of a policy's 64 KiB")
}
