package server

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"overrule.dev/overrule/certs"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/webhook"
)

func TestPathTokenIsAReadinessCheck(t *testing.T) {
	server, probes := &httpsServer{}, &probeServer{checks: map[string]healthz.Checker{}}
	addPathTokens(server, probes, certs.NewPathTokens(fake.NewClientset().CoreV1(), "own", pathSecret, logr.Discard()), parseOptions(t), logr.Discard())
	assert.Len(t, server.runnables, 1)
	require.EqualError(t, probes.checks["path"](nil), "no token of the webhook path yet")
	require.NoError(t, probes.warnings["callers"]())
}

func TestUnknownCallersAreReported(t *testing.T) {
	for args, want := range map[string]error{"--client-subject=a": errNoCallerAuth, "--client-ca-file=ca.crt": nil} {
		server, probes := &httpsServer{}, &probeServer{checks: map[string]healthz.Checker{}}
		addPathTokens(server, probes, nil, parseOptions(t, "--manage-webhooks=false", args), logr.Discard())
		assert.Empty(t, server.runnables)
		assert.NotContains(t, probes.checks, "path")
		if want == nil {
			assert.NotContains(t, probes.warnings, "callers")
			continue
		}
		require.ErrorIs(t, probes.warnings["callers"](), want)
	}
}

func TestCallerWarningsAreJoined(t *testing.T) {
	h := &probeServer{}
	h.addWarning("callers", func() error { return nil })
	h.addWarning("callers", func() error { return errNoCallerAuth })
	assert.ErrorIs(t, h.warnings["callers"](), errNoCallerAuth)
}

const magic = "0123456789abcdef0123456789abcdef"

// Without the token, all requests have the same response, byte by byte.
func TestUnknownPathsHaveTheSameResponse(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: pathSecret, ResourceVersion: "1"}, Data: map[string][]byte{"token": []byte(magic)}}
	tokens := certs.NewPathTokens(fake.NewClientset(secret).CoreV1(), "own", pathSecret, logr.Discard())
	certificates := newTestSource(t)
	d := &httpsServer{
		address: "127.0.0.1:0", connections: 10, certificates: certificates,
		webhooks: webhook.New(webhook.Options{Store: snapshot.New(), Guard: &guard.Guard{Engine: effective.NewEngine()}, Log: logr.Discard(), Tokens: tokens}),
	}
	d.runnables = append(d.runnables, tokens)
	url, shutdown, ended := startServer(t, d)
	defer func() { shutdown(); assert.NoError(t, <-ended) }()
	require.Eventually(t, func() bool { return tokens.Healthy(nil) == nil }, time.Minute, time.Millisecond)

	dialer := tls.Dialer{Config: certificates.client().Transport.(*http.Transport).TLSClientConfig}
	send := func(head string) string {
		t.Helper()
		conn, err := dialer.DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "https://"))
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
		_, err = io.WriteString(conn, head)
		require.NoError(t, err)
		var got strings.Builder
		_, err = io.Copy(&got, bufio.NewReader(conn)) // until the server closes the connection
		require.NoError(t, err)
		return regexp.MustCompile(`Date: .*\r\n`).ReplaceAllString(got.String(), "")
	}
	const want = "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\n" +
		"X-Content-Type-Options: nosniff\r\nContent-Length: 10\r\n\r\nnot found\n"
	for _, target := range []string{
		"/validate", "/mutate", "/validate/", "/validate/" + magic[1:], "/validate/" + magic + "/", "/validate/../validate/" + magic, "//validate/" + magic,
		"/validate/./" + magic, "/validate/" + strings.ToUpper(magic), "/validate/%30" + magic[1:], "https://x/validate", "/",
	} {
		// The body is announced and never sent: the server must not wait for it.
		assert.Equal(t, want, send(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n", target)), target)
	}
	assert.Equal(t, want, send("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n"))
	assert.Contains(t, send("POST /validate/"+magic+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"), "HTTP/1.1 415 ", "with the token the response has the error")
}
