//go:build e2e

package e2e

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/server"
	"overrule.dev/overrule/webhook"
)

// path returns the path of the validating webhook configuration.
func (c *cluster) path(t *testing.T) string {
	t.Helper()
	got := c.Kubectl("get", "validatingwebhookconfiguration/overrule", "-o", "jsonpath={.webhooks[0].clientConfig.service.path}")
	succeed(t, got)
	return got.Stdout
}

// sendForged posts a forged review over a new connection, as a client that can
// reach the port could.
func sendForged(ctx context.Context, s *server.Server, path string, g testNamespaces) (status int, answer string, err error) {
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	body := g.expand(`{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","namespace":"APP","name":"p",
		"kind":{"group":"kuadrant.io","version":"v1","kind":"RateLimitPolicy"},
		"object":{"apiVersion":"kuadrant.io/v1","kind":"RateLimitPolicy","metadata":{"namespace":"APP","name":"p"},"spec":{
			"targetRef":{"group":"gateway.networking.k8s.io","kind":"HTTPRoute","name":"toystore"},"limits":{"login":{"rates":[{"limit":100,"window":"10s"}]}}}}}}`)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+s.Webhook+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

func TestPathTokenRequired(t *testing.T) {
	c := shared(t)
	g := c.prepare(t, "path")
	succeed(t, g.apply(gatewayLimits))
	s := c.start(t)
	status, answer, err := sendForged(t.Context(), s, c.path(t), g)
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, status)
	require.Contains(t, answer, "gw-limits", "the path is correct without a token")

	status, answer, err = sendForged(t.Context(), s, webhook.PathValidate, g)
	require.NoError(t, err)
	assert.Equal(t, http.StatusNotFound, status)
	assert.Equal(t, "not found\n", answer)
	assert.NotContains(t, s.Log(), strings.TrimPrefix(c.path(t), webhook.PathValidate+"/"))
}

// The Secret is deleted while two replicas receive writes: the new path is called,
// and no write is lost on the way. The certs package edits the Secret in other
// ways.
func TestPathTokenRotationLosesNoWrite(t *testing.T) {
	env.Long(t)
	c := shared(t)
	g := c.prepare(t, "paths")
	r := newServiceProxy(t)
	first, second := c.boot(t, r), c.boot(t, r)
	r.setBackends(first.Webhook, second.Webhook)
	c.awaitCalled(t)
	w := startWriters(t, g, 2)
	before := c.path(t)
	succeed(t, c.Kubectl("-n", server.Namespace, "delete", "secret/overrule-path"))
	soon(t, func() bool { return c.path(t) != before }, "the path stays")
	w.awaitMore(t, 12)
	w.end()
	assert.Empty(t, w.failures(), "of %d writes", w.writes.Load())
}

// awaitMore waits until more writes were answered.
func (s *stream) awaitMore(t *testing.T, writes int64) {
	t.Helper()
	want := s.writes.Load() + writes
	soon(t, func() bool { return s.writes.Load() >= want }, "the writes stand still")
}
