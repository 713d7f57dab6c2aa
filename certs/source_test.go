package certs

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestServiceNames(t *testing.T) {
	assert.Equal(t, []string{"overrule.own.svc", "overrule.own", "overrule.own.svc.cluster.local", "localhost"},
		ServiceNames("overrule", "own", "localhost"))
}
