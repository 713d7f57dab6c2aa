package faultproxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// backend is a server behind a proxy that counts its requests.
type backend struct {
	proxy    *Proxy
	address  string
	requests atomic.Int32
	handled  chan struct{} // one for each request
}

func newBackend(t *testing.T) *backend {
	t.Helper()
	b := &backend{handled: make(chan struct{}, 10)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.requests.Add(1)
		_, _ = io.Copy(w, r.Body)
		b.handled <- struct{}{}
	}))
	t.Cleanup(server.Close)
	var err error
	b.address = strings.TrimPrefix(server.URL, "http://")
	b.proxy, err = Start(t.Context(), "127.0.0.1:0", b.address)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, b.proxy.Close()) })
	return b
}

// client returns a client with a connection of its own.
func client(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// echo posts a text and returns the response.
func (b *backend) echo(ctx context.Context, client *http.Client, text string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+b.proxy.Address(), strings.NewReader(text))
	if err != nil {
		return "", err
	}
	response, err := client.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

// begin calls echo in the background.
func (b *backend) begin(t *testing.T, client *http.Client) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		got, err := b.echo(t.Context(), client, "hello")
		if err == nil && got != "hello" {
			err = errors.New("got " + got)
		}
		done <- err
	}()
	return done
}

func requireReset(t *testing.T, err error) {
	t.Helper()
	require.Error(t, err)
	assert.True(t, errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.EOF), "%v", err)
}

func TestForwards(t *testing.T) {
	b := newBackend(t)
	large := strings.Repeat("x", 1<<20)
	got, err := b.echo(t.Context(), client(t), large)
	require.NoError(t, err)
	assert.Equal(t, large, got)
	_, total := b.proxy.Connections(b.address)
	assert.Equal(t, 1, total)
}

func TestDelay(t *testing.T) {
	b := newBackend(t)
	const delay = 50 * time.Millisecond
	b.proxy.Set(Both(Direction{Delay: delay}))
	began := time.Now()
	_, err := b.echo(t.Context(), client(t), "hello")
	require.NoError(t, err)
	assert.GreaterOrEqual(t, time.Since(began), 2*delay)
}

func TestHeldRequestArrivesLater(t *testing.T) {
	b, c := newBackend(t), client(t)
	_, err := b.echo(t.Context(), c, "open the connection")
	require.NoError(t, err)
	<-b.handled
	b.proxy.Set(Faults{ToServer: Direction{Behavior: Hold}})
	done := b.begin(t, c)

	select {
	case err := <-done:
		require.Fail(t, "it was forwarded", "%v", err)
	case <-time.After(50 * time.Millisecond):
	}
	assert.EqualValues(t, 1, b.requests.Load())
	b.proxy.Set(Faults{})
	require.NoError(t, <-done)
	_, total := b.proxy.Connections(b.address)
	assert.Equal(t, 1, total, "on the same connection")
}

func TestLostResponse(t *testing.T) {
	b := newBackend(t)
	b.proxy.Set(Faults{ToClient: Direction{Behavior: Sever}})
	done := b.begin(t, client(t))
	<-b.handled
	requireReset(t, <-done)
	assert.EqualValues(t, 1, b.requests.Load())
}

func TestReset(t *testing.T) {
	b := newBackend(t)
	b.proxy.Set(Faults{ToClient: Direction{Behavior: Hold}})
	done := b.begin(t, client(t))
	<-b.handled
	b.proxy.Reset()
	requireReset(t, <-done)

	b.proxy.Set(Faults{})
	_, err := b.echo(t.Context(), client(t), "new connections are forwarded")
	require.NoError(t, err)
}

func TestReject(t *testing.T) {
	b := newBackend(t)
	kept := client(t)
	_, err := b.echo(t.Context(), kept, "open the connection")
	require.NoError(t, err)
	b.proxy.Set(Faults{Reject: true})

	_, err = b.echo(t.Context(), client(t), "new")
	requireReset(t, err)
	_, err = b.echo(t.Context(), kept, "open")
	require.NoError(t, err)
}

func TestHoldHidesThatTheServerHasClosed(t *testing.T) {
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p, err := Start(t.Context(), "127.0.0.1:0", listener.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.Close()) })
	p.Set(Both(Direction{Behavior: Hold}))
	here, err := new(net.Dialer).DialContext(t.Context(), "tcp", p.Address())
	require.NoError(t, err)
	t.Cleanup(func() { _ = here.Close() })
	there, err := listener.Accept()
	require.NoError(t, err)
	require.NoError(t, there.Close())
	require.NoError(t, listener.Close())

	require.NoError(t, here.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err = here.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	p.Set(Faults{})
	require.NoError(t, here.SetReadDeadline(time.Time{}))
	_, err = here.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}

func TestTargetsOfNewConnections(t *testing.T) {
	first, second := newBackend(t), newBackend(t)
	kept := client(t)
	_, err := first.echo(t.Context(), kept, "")
	require.NoError(t, err)
	first.proxy.SetTargets(first.address, second.address)
	for range 4 {
		_, err = first.echo(t.Context(), client(t), "")
		require.NoError(t, err)
	}
	assert.EqualValues(t, 3, first.requests.Load())
	assert.EqualValues(t, 2, second.requests.Load(), "new connections in turn")
	_, total := first.proxy.Connections(second.address)
	assert.Equal(t, 2, total)

	first.proxy.SetTargets()
	_, err = first.echo(t.Context(), client(t), "no one listens")
	requireReset(t, err)
	_, err = first.echo(t.Context(), kept, "")
	require.NoError(t, err, "an open connection stays")
}
