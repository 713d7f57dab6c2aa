package server

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"overrule.dev/overrule/certs"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/webhook"
)

func TestPathTokenSource(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	for name, c := range map[string]struct {
		args                     []string
		tokens, source, runnable bool
		note                     string
	}{
		"managed: a Secret":                     {tokens: true, source: true, runnable: true},
		"not managed: a file":                   {args: []string{"--manage-webhooks=false", "--path-token-file=" + file}, tokens: true, runnable: true},
		"not managed, with client certificates": {args: []string{"--manage-webhooks=false", "--client-ca-file=ca.crt"}},
		"not managed, without authentication":   {args: []string{"--manage-webhooks=false"}, note: "any client that reaches the webhook port can read names and limits of policies: set --path-token-file or --client-ca-file"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			p, err := newPathTokens(fake.NewClientset(), parseOptions(t, c.args...), funcr.New(func(_, args string) { log.WriteString(args) }, funcr.Options{}))
			require.NoError(t, err)
			assert.Equal(t, c.tokens, p.tokens != nil)
			assert.Equal(t, c.source, p.source != nil)

			server, probes := &httpsServer{}, &probeServer{checks: map[string]healthz.Checker{}}
			p.protect(server, probes)
			assert.Equal(t, c.runnable, len(server.runnables) == 1)
			if c.tokens {
				require.ErrorIs(t, probes.checks["path"](nil), certs.ErrNoTokenYet, "not ready before a token is known")
			} else {
				assert.NotContains(t, probes.checks, "path")
			}
			if c.note == "" {
				assert.Empty(t, log.String())
				return
			}
			require.EqualError(t, probes.warnings["callers"](), c.note)
			assert.Contains(t, log.String(), c.note)
		})
	}
}

func TestInvalidPathTokens(t *testing.T) {
	_, err := newPathTokens(fake.NewClientset(), options{manageWebhooks: true}, logr.Discard())
	require.ErrorContains(t, err, `secret ""/"overrule-path"`)
}

func TestCallerWarningsAreJoined(t *testing.T) {
	h := &probeServer{}
	h.addCallerWarning(func() error { return nil })
	h.addCallerWarning(func() error { return errNoCallerAuth })
	assert.ErrorIs(t, h.warnings["callers"](), errNoCallerAuth)
}

const magic = "0123456789abcdef0123456789abcdef"

// Without the token, all requests have the same response, byte by byte.
func TestUnknownPathsHaveTheSameResponse(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	require.NoError(t, os.WriteFile(file, []byte(magic), 0o600))
	tokens, err := certs.NewPathTokenFile(certs.PathTokenFileOptions{File: file})
	require.NoError(t, err)
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
