package certs

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAFaultIsNewOnceAndAgainAfterItWasMended(t *testing.T) {
	var f fault
	notYet := errors.New("nothing yet")
	require.NoError(t, f.now())
	require.EqualError(t, f.because(notYet), "nothing yet", "nobody has looked")

	assert.True(t, f.book(errors.New("cut off")))
	assert.False(t, f.book(errors.New("cut off")), "what is wrong already")
	require.EqualError(t, f.because(notYet), "nothing yet: cut off")
	require.ErrorIs(t, f.because(notYet), notYet)

	assert.True(t, f.book(errors.New("expired")), "something else")
	assert.True(t, f.book(nil))
	require.NoError(t, f.now())
	assert.True(t, f.book(errors.New("expired")), "it was mended in between")
}
