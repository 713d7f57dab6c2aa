package main

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// clock notes how long a connection is given to send something; 0 is for ever.
type clock struct {
	net.Conn
	given time.Duration
}

func (c *clock) SetReadDeadline(t time.Time) error {
	c.given = 0
	if !t.IsZero() {
		c.given = time.Until(t)
	}
	return c.Conn.SetReadDeadline(t)
}

func TestASilentConnectionIsGivenTheTimeOfAnIdleOneAndAHeadItsOwn(t *testing.T) {
	here, there := net.Pipe()
	c := &clock{Conn: here}
	p := &patient{Conn: c}
	about := func(want time.Duration, msg string) {
		t.Helper()
		assert.Greater(t, c.given, want/2, msg)
		assert.LessOrEqual(t, c.given, want, msg)
	}
	hear := func() {
		t.Helper()
		go func() { _, _ = there.Write([]byte("x")) }()
		_, err := p.Read(make([]byte, 1))
		require.NoError(t, err)
	}
	set := func(d time.Duration) { require.NoError(t, p.SetReadDeadline(time.Now().Add(d))) }

	set(headerTimeout)
	about(headerTimeout, "the handshake")
	hear()
	about(headerTimeout, "its bytes change nothing")
	require.NoError(t, p.SetReadDeadline(time.Time{}))
	assert.Zero(t, c.given)

	set(headerTimeout)
	about(idleTimeout, "nothing has been sent")
	hear()
	about(headerTimeout, "the head has begun")
	set(time.Hour)
	about(time.Hour, "what comes after is the server's own")
	hear()
	about(time.Hour, "and stays so")

	require.NoError(t, p.SetReadDeadline(time.Time{}))
	set(headerTimeout)
	about(headerTimeout, "the next head has only its own")
}

func TestAConnectionThatIsUsedLateIsAnswered(t *testing.T) {
	certificates := newGiven(t)
	d := &frontDoor{address: "127.0.0.1:0", connections: 10, hooks: hooks(), certificates: certificates}
	url, leave, ended := opened(t, d)
	c := certificates.call(t, url)
	time.Sleep(headerTimeout + time.Second) // a head may not take as long: that nothing happens takes its time
	assert.Equal(t, told{status: 200}, c.ask(t))
	require.NoError(t, c.Close())
	leave()
	require.NoError(t, <-ended)
}
