package bench

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// noopWebhook is controller-runtime's webhook that allows everything.
func noopWebhook() http.Handler {
	return &admission.Webhook{Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
		return admission.Allowed("")
	})}
}

// webhookClient calls a server as an API server calls a Service: over TLS 1.3 and
// HTTP/1.1, on persistent connections.
type webhookClient struct {
	client *http.Client
	url    string
}

// serveTLS serves a handler; calls use this path and query.
func serveTLS(tb testing.TB, h http.Handler, path string) webhookClient {
	tb.Helper()
	s := httptest.NewUnstartedServer(h)
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"}}
	s.StartTLS()
	tb.Cleanup(s.Close)
	client := s.Client()
	client.Transport.(*http.Transport).MaxIdleConnsPerHost = mostClients
	return webhookClient{client, s.URL + path}
}

// timeout is so long that no call exceeds it on a busy machine: only the response
// time is measured.
const timeout = "?timeout=30s"

var allowed = []byte(`"allowed":true`)

// call sends a review and reads the response, which must allow the write.
func (w webhookClient) call(ctx context.Context, review []byte) (time.Duration, error) {
	start := time.Now()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(review))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := w.client.Do(r)
	if err != nil {
		return 0, err
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err
	}
	if err := answer.Body.Close(); err != nil {
		return 0, err
	}
	took := time.Since(start)
	if !bytes.Contains(text, allowed) {
		return 0, fmt.Errorf("the write was not allowed: %s: %s", answer.Status, text)
	}
	return took, nil
}

func TestDeniedCallIsNoSample(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"allowed":false}`) }))
	defer s.Close()
	_, err := webhookClient{s.Client(), s.URL}.call(t.Context(), []byte(`{}`))
	require.ErrorContains(t, err, `not allowed: 200 OK: {"allowed":false}`)
}
