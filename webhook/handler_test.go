package webhook

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fixedToken is a token, or none yet.
type fixedToken string

func (w fixedToken) Accepts(token string) (ok, known bool) {
	return w != "" && string(w) == token, w != ""
}

const testToken = "0123456789abcdef0123456789abcdef"

func TestValidToken(t *testing.T) {
	d := newTestServer(t, Options{Tokens: fixedToken(testToken)}, cluster, gatewayLimits)
	assert.False(t, d.send(t, PathValidate+"/"+testToken, create(t, routeLimits(100))).Allowed)
	assert.False(t, d.send(t, PathValidate+"/"+testToken+"?timeout=3s", create(t, routeLimits(100))).Allowed)
	assert.True(t, d.send(t, PathMutate+"/"+testToken, create(t, routeLimits(100))).Allowed)
}

// A caller without it gets the same bytes for any path, and nothing
// that they sent or that the cluster has is in them.
func TestInvalidTokenGetsSameResponse(t *testing.T) {
	paths := map[string]string{
		"no token":                   PathValidate,
		"a token that is wrong":      PathValidate + "/" + strings.Repeat("0", 32),
		"all of it but the end":      PathValidate + "/" + testToken[:31],
		"a slash after it":           PathValidate + "/" + testToken + "/",
		"a slash too many before it": PathValidate + "//" + testToken,
		"escaped":                    PathValidate + "/%30" + testToken[1:],
		"a path traversed":           "/x/.." + PathValidate + "/" + testToken,
		"a backslash":                PathValidate + `%5C` + testToken,
		"the token alone":            "/" + testToken,
		"the token before the path":  "/" + testToken + PathValidate,
		"in the query":               PathValidate + "?token=" + testToken,
		"the root":                   "/",
		"a long one":                 PathMutate + "/" + strings.Repeat("a", 4000),
	}
	var first []byte
	d := newTestServer(t, Options{Tokens: fixedToken(testToken)}, cluster, gatewayLimits)
	for name, path := range paths {
		t.Run(name, func(t *testing.T) {
			for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodOptions, http.MethodConnect, "BREW"} {
				body := &unreadBody{t: t, Reader: bytes.NewReader(review(t, create(t, routeLimits(100))))}
				r := httptest.NewRequestWithContext(t.Context(), method, "/", body)
				u, err := url.ParseRequestURI(path)
				require.NoError(t, err)
				r.URL = u
				r.Header.Set("Content-Type", "application/json")
				w := httptest.NewRecorder()
				d.Handler().ServeHTTP(w, r)

				var got bytes.Buffer
				require.NoError(t, w.Result().Write(&got))
				if first == nil {
					first = got.Bytes()
				}
				assert.Equal(t, string(first), got.String(), method)
				assert.Equal(t, http.StatusNotFound, w.Code)
				assert.Equal(t, "not found\n", w.Body.String())
				assert.Equal(t, "close", w.Header().Get("Connection"), "the client has to reconnect")
			}
		})
	}
	assert.NotContains(t, d.log.String(), testToken[:31])
	d.counted(t, "overrule_requests_rejected_total", `
# TYPE overrule_requests_rejected_total counter
overrule_requests_rejected_total{reason="unknown_path",webhook="none"} 65
`)
}

// unreadBody is a body that must not be read.
type unreadBody struct {
	io.Reader
	t *testing.T
}

func (u *unreadBody) Read([]byte) (int, error) {
	u.t.Error("the body of a request to an unknown path was read")
	return 0, io.EOF
}

// The body is announced and never sent. A connection with a request in flight
// is never closed to make room for others, so this one must not stay open.
func TestNoTokenYetDoesNotWaitForBody(t *testing.T) {
	d := newTestServer(t, Options{Tokens: fixedToken("")}, cluster)
	c := d.listen(t, newBlocking())
	conn, err := (&tls.Dialer{Config: c.server.Client().Transport.(*http.Transport).TLSClientConfig}).
		DialContext(t.Context(), "tcp", c.server.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: example.com\r\nContent-Length: 10\r\n\r\n{", PathValidate)
	require.NoError(t, err)
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	text, err := io.ReadAll(conn) // until the server closes the connection
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(string(text), "HTTP/1.1 503 Service Unavailable\r\n"), string(text))
}

func TestNoTokenYetIsNotReady(t *testing.T) {
	d := newTestServer(t, Options{Tokens: fixedToken("")}, cluster, gatewayLimits)
	for _, path := range []string{"/", PathValidate, PathValidate + "/", PathValidate + "/" + testToken} {
		w := d.post(t, path, review(t, create(t, routeLimits(100))))
		assert.Equal(t, http.StatusServiceUnavailable, w.Code)
		assert.Equal(t, "not ready\n", w.Body.String())
		assert.Equal(t, "1", w.Header().Get("Retry-After"))
		assert.Equal(t, "close", w.Header().Get("Connection"))
	}
}
