package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"

	"overrule.dev/overrule/webhook"
)

// besieged is a door that somebody abuses.
type besieged struct {
	t            *testing.T
	certificates *given
	url, address string
}

func besiege(t *testing.T, connections int) *besieged {
	t.Helper()
	b := &besieged{t: t, certificates: newGiven(t)}
	url, leave, ended := opened(t, &frontDoor{address: "127.0.0.1:0", connections: connections, hooks: hooks(), certificates: b.certificates})
	b.url, b.address = url, strings.TrimPrefix(url, "https://")
	t.Cleanup(func() {
		leave()
		assert.NoError(t, <-ended)
	})
	return b
}

// answers fails unless a client on a connection of its own is answered.
func (b *besieged) answers() {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	client := b.certificates.client()
	defer client.CloseIdleConnections()
	response, err := client.Do(b.request(ctx, strings.NewReader(
		`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","kind":{"version":"v1","kind":"Pod"},"operation":"CREATE","object":{}}}`)))
	require.NoError(b.t, err)
	require.NoError(b.t, response.Body.Close())
	assert.Equal(b.t, http.StatusOK, response.StatusCode)
}

func (b *besieged) request(ctx context.Context, body io.Reader) *http.Request {
	b.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.url+webhook.PathValidate, body)
	require.NoError(b.t, err)
	r.Header.Set("Content-Type", "application/json")
	return r
}

// Ten thousand connections beside two thousand places, to scale.
func TestConnectionsThatSayNothingKeepNobodyOut(t *testing.T) {
	b := besiege(t, 20)
	for range 500 {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", b.address)
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
	}
	b.answers()
}

func TestAHandshakeAloneKeepsNoPlace(t *testing.T) {
	b := besiege(t, 2)
	dialer := tls.Dialer{Config: b.certificates.client().Transport.(*http.Transport).TLSClientConfig}
	for range 6 {
		conn, err := dialer.DialContext(t.Context(), "tcp", b.address)
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
	}
	b.answers()
}

// The preface of HTTP/2 needs no token, and what is asked by an unknown path is
// no reason to keep a place either.
func TestWhoDoesNotKnowThePathKeepsNoPlace(t *testing.T) {
	for name, say := range map[string]string{
		"http2":             http2.ClientPreface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00", // an empty SETTINGS frame
		"half a head":       "POST /validate HTTP/1.1\r\nHost: ",
		"an unknown path":   "GET /elsewhere HTTP/1.1\r\nHost: x\r\n\r\n",
		"no HTTP":           "\x00\x00\x00\x00",
		"nothing but blank": "\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			b := besiege(t, 2)
			config := b.certificates.client().Transport.(*http.Transport).TLSClientConfig.Clone()
			if name == "http2" {
				config.NextProtos = []string{"h2"}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // half of what an idle one may stay for
			defer cancel()
			for range 6 {
				conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", b.address)
				require.NoError(t, err)
				defer func() { _ = conn.Close() }()
				_, err = io.WriteString(conn, say)
				require.NoError(t, err)
				if name == "http2" {
					_, err = io.ReadFull(conn, make([]byte, 9)) // the head of its SETTINGS frame: it speaks HTTP/2 by now
					require.NoError(t, err)
				}
			}
			b.answers()
		})
	}
}

// endless is a body of so many blanks.
type endless struct {
	left int
	sent atomic.Int64
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), e.left)
	copy(p, bytes.Repeat([]byte(" "), n))
	e.left -= n
	e.sent.Add(int64(n))
	return n, nil
}

func TestABodyOfAHundredMegabytesIsNotTakenIn(t *testing.T) {
	for name, length := range map[string]int64{"told": 100 << 20, "in chunks": -1} {
		t.Run(name, func(t *testing.T) {
			b := besiege(t, 10)
			body := &endless{left: 100 << 20}
			r := b.request(t.Context(), body)
			r.ContentLength = length
			response, err := b.certificates.client().Do(r)
			if err == nil { // else the connection was cut while it was sent
				assert.Equal(t, http.StatusRequestEntityTooLarge, response.StatusCode)
				require.NoError(t, response.Body.Close())
			}
			assert.Less(t, body.sent.Load(), int64(50<<20), "most of it was never read")
			b.answers()
		})
	}
}

// A body that says it is compressed is not unpacked: the API server sends none.
func TestAGzipBombStaysPacked(t *testing.T) {
	var bomb bytes.Buffer
	packer := gzip.NewWriter(&bomb)
	_, err := io.Copy(packer, &endless{left: 64 << 20})
	require.NoError(t, err)
	require.NoError(t, packer.Close())
	b := besiege(t, 10)
	r := b.request(t.Context(), &bomb)
	r.Header.Set("Content-Encoding", "gzip")
	response, err := b.certificates.client().Do(r)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	assert.Equal(t, http.StatusBadRequest, response.StatusCode)
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	assert.Contains(t, string(text), "the body is no AdmissionReview: ")
	b.answers()
}

// A head that never ends is given up, and a client beside it is answered.
func TestOneByteASecondHoldsUpNobody(t *testing.T) {
	b := besiege(t, 10) // or the client would have its place
	dialer := tls.Dialer{Config: b.certificates.client().Transport.(*http.Transport).TLSClientConfig}
	dialled, err := dialer.DialContext(t.Context(), "tcp", b.address)
	require.NoError(t, err)
	conn := dialled.(*tls.Conn)
	defer func() { _ = conn.Close() }()
	_, err = io.WriteString(conn, "P")
	require.NoError(t, err)
	b.answers()
	var trickling sync.WaitGroup
	trickling.Go(func() {
		for _, err := io.WriteString(conn, "O"); err == nil; _, err = io.WriteString(conn, "O") {
			time.Sleep(time.Second)
		}
	})
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute))) // half of what an idle one may stay for
	_, err = io.Copy(io.Discard, conn)
	assert.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the server ends the connection")
	require.NoError(t, conn.NetConn().Close())
	trickling.Wait()
}

func TestAHeadThatIsTooLongIsNotTakenIn(t *testing.T) {
	b := besiege(t, 10)
	for length, want := range map[int]int{
		headerBytes / 2: http.StatusOK,
		headerBytes * 2: http.StatusRequestHeaderFieldsTooLarge,
	} {
		r := b.request(t.Context(), strings.NewReader(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","kind":{"version":"v1","kind":"Pod"},"operation":"CREATE","object":{}}}`))
		r.Header.Set("X-Long", strings.Repeat("x", length))
		response, err := b.certificates.client().Do(r)
		require.NoError(t, err, length)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, want, response.StatusCode, length)
	}
	b.answers()
}

func TestWhoOffersAnOlderTLSIsRefused(t *testing.T) {
	b := besiege(t, 10)
	config := b.certificates.client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.MinVersion, config.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	_, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", b.address)
	require.ErrorContains(t, err, "remote error: tls: protocol version not supported")
	b.answers()
}

func TestALobbyThatIsClosedLetsNobodyWait(t *testing.T) {
	inner, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := newLobby(inner, 1)
	dial := func() {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", inner.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
	}
	dial()
	first, err := l.Accept()
	require.NoError(t, err)
	heard(new(http.Request).WithContext(greet(t.Context(), first)))
	dial()
	waiting := make(chan error, 1)
	go func() {
		_, err := l.Accept()
		waiting <- err
	}()
	require.NoError(t, l.Close())
	require.ErrorIs(t, <-waiting, net.ErrClosed)
	require.NoError(t, first.Close())
	assert.Error(t, first.Close(), "its place is given back once")
	assert.Empty(t, l.places)
}
