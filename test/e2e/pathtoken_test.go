//go:build e2e

package e2e

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

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

// postForged posts a forged review, as a client that can reach the port could.
func postForged(t *testing.T, s *server.Server, path string, g testNamespaces) (status int, answer string) {
	t.Helper()
	status, answer, err := sendForged(t.Context(), s, path, g)
	require.NoError(t, err)
	return status, answer
}

// sendForged does so over a new connection.
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
	status, answer := postForged(t, s, c.path(t), g)
	assert.Equal(t, http.StatusOK, status)
	require.Contains(t, answer, "gw-limits", "the path is correct without a token")

	status, answer = postForged(t, s, webhook.PathValidate, g)
	assert.Equal(t, http.StatusNotFound, status)
	assert.Equal(t, "not found\n", answer)
	assert.NotContains(t, s.Log(), strings.TrimPrefix(c.path(t), webhook.PathValidate+"/"))
}

// The Secret is deleted or edited three times while two replicas receive writes.
func TestPathTokenRotationLosesNoWrite(t *testing.T) {
	env.Long(t)
	c := shared(t)
	g := c.prepare(t, "paths")
	r := newServiceProxy(t)
	first, second := c.boot(t, r), c.boot(t, r)
	r.setBackends(first.Webhook, second.Webhook)
	c.awaitCalled(t)
	client, err := kubernetes.NewForConfig(c.Config)
	require.NoError(t, err)
	secrets := client.CoreV1().Secrets(server.Namespace)

	w := startWriters(t, g, 4)
	for name, damage := range map[string]func(*corev1.Secret){
		"deleted":       nil,
		"emptied":       func(s *corev1.Secret) { s.Data = nil },
		"another token": func(s *corev1.Secret) { s.Data["token"] = []byte(strings.Repeat("z", 40)) },
	} {
		before := c.path(t)
		if damage == nil {
			require.NoError(t, secrets.Delete(t.Context(), "overrule-path", metav1.DeleteOptions{}), name)
		} else {
			soon(t, func() bool {
				secret, err := secrets.Get(t.Context(), "overrule-path", metav1.GetOptions{})
				require.NoError(t, err)
				damage(secret)
				_, err = secrets.Update(t.Context(), secret, metav1.UpdateOptions{})
				return err == nil
			}, "the secret cannot be edited: "+name)
		}
		soon(t, func() bool { return c.path(t) != before }, "the path stays: "+name)
		secret, err := secrets.Get(t.Context(), "overrule-path", metav1.GetOptions{})
		require.NoError(t, err)
		// Otherwise the next one waits for the five minutes for which this one is
		// kept.
		delete(secret.Data, "previous")
		_, err = secrets.Update(t.Context(), secret, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	w.end()
	assert.Empty(t, w.failures(), "of %d writes", w.writes.Load())
	assert.Greater(t, w.writes.Load(), int64(50))
	t.Logf("%d writes, %d lost", w.writes.Load(), len(w.failures()))
}

func TestPathTokenFromFile(t *testing.T) {
	c := shared(t)
	g := c.prepare(t, "pathfile")
	succeed(t, g.apply(gatewayLimits))
	file, token := filepath.Join(t.TempDir(), "tokens"), strings.Repeat("t", 32)
	require.NoError(t, os.WriteFile(file, []byte(token), 0o600))
	s := server.Start(t, c.Env, server.Options{Unprobed: true, Args: []string{"--manage-webhooks=false", "--path-token-file=" + file}})

	status, answer := postForged(t, s, webhook.PathValidate, g)
	assert.Equal(t, http.StatusNotFound, status)
	assert.Equal(t, "not found\n", answer)
	status, _ = postForged(t, s, webhook.PathValidate+"/"+token, g)
	assert.Equal(t, http.StatusOK, status)

	next := strings.Repeat("n", 32)
	require.NoError(t, os.WriteFile(file, []byte(token+"\n"+next), 0o600))
	soon(t, func() bool {
		status, _ := postForged(t, s, webhook.PathValidate+"/"+next, g)
		return status == http.StatusOK
	}, "an added token is not accepted")
}
