package snapshot_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"

	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
)

func TestSame(t *testing.T) {
	gw := func(class string) *gateway.Gateway {
		return &gateway.Gateway{Namespace: "infra", Name: "edge", Class: class, Listeners: []gateway.Listener{{Name: "http"}}}
	}
	assert.True(t, snapshot.Same(gw("a"), gw("a")))
	assert.False(t, snapshot.Same(gw("a"), gw("b")))
	assert.False(t, snapshot.Same(gw("a"), &gateway.Route{}))
	assert.False(t, snapshot.Same(&gateway.Route{}, gw("a")))
	assert.True(t, snapshot.Same(&gateway.Route{Name: "r"}, &gateway.Route{Name: "r"}))
	assert.False(t, snapshot.Same(&gateway.Route{Name: "r"}, &gateway.Route{Name: "s"}))
	c := func(uid types.UID, generation int64) *constraint.Constraint {
		return &constraint.Constraint{UID: uid, Generation: generation}
	}
	assert.True(t, snapshot.Same(c("u", 1), c("u", 1)), "only its status changed")
	assert.False(t, snapshot.Same(c("u", 1), c("u", 2)))
	assert.False(t, snapshot.Same(c("u", 1), c("v", 1)), "it was made again")
	assert.False(t, snapshot.Same(c("", 0), c("", 0)), "files have neither")
	assert.False(t, snapshot.Same(c("u", 1), gw("a")))
}
