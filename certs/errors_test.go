package certs

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLastErrorReportsChanges(t *testing.T) {
	var f lastError
	notYet := errors.New("nothing yet")
	require.NoError(t, f.get())
	require.EqualError(t, f.wrap(notYet), "nothing yet", "not read yet")

	assert.True(t, f.set(errors.New("cut off")))
	assert.False(t, f.set(errors.New("cut off")), "unchanged")
	require.EqualError(t, f.wrap(notYet), "nothing yet: cut off")
	require.ErrorIs(t, f.wrap(notYet), notYet)

	assert.True(t, f.set(errors.New("expired")), "another error")
	assert.True(t, f.set(nil))
	require.NoError(t, f.get())
	assert.True(t, f.set(errors.New("expired")), "it was fixed in between")
}
