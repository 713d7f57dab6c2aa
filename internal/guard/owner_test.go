package guard_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"overrule.dev/overrule/internal/guard"
)

// The API server takes an owner's name of any length.
func TestOwnersTextIsBounded(t *testing.T) {
	long := []metav1.OwnerReference{{Kind: "ConfigMap", Name: strings.Repeat("x", 1<<20), UID: "1"}}
	assert.Equal(t, "ConfigMap "+strings.Repeat("x", 502)+"…", guard.NewOwners(nil, long))
	assert.Empty(t, guard.NewOwners(long, long))
}
