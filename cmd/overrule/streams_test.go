package main

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"overrule.dev/overrule/webhook"
)

// Rapid reset: streams that are begun and taken back, over and over.
func TestStreamsThatAreResetAtOnceKeepNobodyOut(t *testing.T) {
	b := besiege(t, 10)
	framer, conn := b.speaksHTTP2()
	go func() { _, _ = io.Copy(io.Discard, conn) }()
	beginAndTakeBack(t, framer)
	b.answers()
}

// speaksHTTP2 is a connection after the client's part of the preface.
func (b *besieged) speaksHTTP2() (*http2.Framer, net.Conn) {
	b.t.Helper()
	config := b.certificates.client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.NextProtos = []string{"h2"}
	conn, err := (&tls.Dialer{Config: config}).DialContext(b.t.Context(), "tcp", b.address)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, http2.ClientPreface)
	require.NoError(b.t, err)
	framer := http2.NewFramer(conn, conn)
	require.NoError(b.t, framer.WriteSettings())
	return framer, conn
}

// beginAndTakeBack does so with ten thousand streams, or until the server has
// had enough of it.
func beginAndTakeBack(t *testing.T, framer *http2.Framer) {
	t.Helper()
	var head bytes.Buffer
	packer := hpack.NewEncoder(&head)
	for _, h := range [][2]string{{":method", "POST"}, {":scheme", "https"}, {":authority", "here"}, {":path", webhook.PathValidate}, {"content-type", "application/json"}} {
		require.NoError(t, packer.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}))
	}
	block := bytes.Clone(head.Bytes())
	for id := uint32(1); id < 20_000; id += 2 {
		if framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block, EndHeaders: true}) != nil ||
			framer.WriteRSTStream(id, http2.ErrCodeCancel) != nil {
			return
		}
	}
}

// documentedStreams are those of one connection: docs/operations.md, Under load.
const documentedStreams = 100

// A stream that was taken back counts for as long as somebody works on it: else
// resets would be a way to have more done at once than streams are allowed.
func TestStreamsThatAreResetKeepTheirPlaceWhileTheyAreWorkedOn(t *testing.T) {
	b := &besieged{t: t, certificates: newGiven(t)}
	server := (&frontDoor{hooks: hooks(), certificates: b.certificates}).server()
	var working atomic.Int64
	release := make(chan struct{})
	server.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		working.Add(1)
		<-release
	})
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	b.address = listener.Addr().String()
	var serving sync.WaitGroup
	serving.Go(func() { assert.ErrorIs(t, server.ServeTLS(newLobby(listener, 10), "", ""), http.ErrServerClosed) })
	defer serving.Wait()
	defer func() { assert.NoError(t, server.Close()) }()
	defer close(release)

	framer, conn := b.speaksHTTP2()
	require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	serving.Go(func() { beginAndTakeBack(t, framer) })
	var allowed uint32
	for {
		frame, err := framer.ReadFrame()
		if err != nil {
			assert.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the server ends the connection")
			break
		}
		switch f := frame.(type) {
		case *http2.SettingsFrame:
			if most, ok := f.Value(http2.SettingMaxConcurrentStreams); ok {
				allowed = most
			}
		case *http2.GoAwayFrame:
			assert.Equal(t, http2.ErrCodeEnhanceYourCalm, f.ErrCode)
		}
	}
	assert.EqualValues(t, documentedStreams, allowed)
	assert.Eventually(t, func() bool { return working.Load() >= documentedStreams }, time.Minute, time.Millisecond, "handlers at once, of which none has ended")
	assert.EqualValues(t, documentedStreams, working.Load())
}
