package watch

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestHealthTellsALiveWatchFromADeadOne(t *testing.T) {
	now := time.Unix(100, 0)
	c := newContact("gateways")
	c.now = func() time.Time { return now }
	lost := errors.New("connection refused")

	assert.Equal(t, SourceHealth{Source: "gateways"}, c.get())

	assert.True(t, c.failed(lost))
	assert.False(t, c.failed(errors.New("connection refused from another port")), "it fails as before")
	assert.True(t, c.failed(apierrors.NewForbidden(schema.GroupResource{}, "", nil)), "it fails for another reason")
	assert.True(t, c.failed(lost))

	c.list()
	assert.Equal(t, SourceHealth{Source: "gateways", Synced: true, LastContact: now, Err: lost, Lists: 1, Failures: 4},
		c.get(), "a list mends no watch")

	now = now.Add(time.Second)
	assert.True(t, c.opened())
	assert.False(t, c.opened())
	assert.Equal(t, SourceHealth{Source: "gateways", Synced: true, LastContact: now, Lists: 1, Failures: 4}, c.get())

	now = now.Add(time.Second)
	c.event()
	assert.Equal(t, now, c.get().LastContact)
}
