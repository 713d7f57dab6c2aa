package certs

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"overrule.dev/overrule/test/logbuffer"
	"overrule.dev/overrule/test/process"
)

// Two replicas share a Secret over two lifetimes of an authority and twenty of a leaf. At
// any time, a client with the bundle that the leader published last verifies both, and
// they talk to each other, whatever serving certificate they have.
func TestRotationFailsNoHandshake(t *testing.T) {
	for name, names := range map[string][]string{"the webhook's, too": {servedName}, "between replicas only": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { rotate(t, names) })
		})
	}
}

func rotate(t *testing.T, names []string) {
	t.Helper()
	s, log := &sharedSecrets{}, &logbuffer.Buffer{}
	var replicas []*Authority
	for range 2 {
		a := New(Options{
			Secrets: corev1client.SecretsGetter(s), Namespace: "own", SecretName: "ca", Names: names,
			CAValidity: 90 * hour, LeafValidity: 10 * hour, PollInterval: 10 * time.Minute, PropagationDelay: 2 * hour, Log: log.Logger(),
		})
		replicas = append(replicas, a)
		process.Run(t, a.Start)
		time.Sleep(7 * time.Minute) // they poll at different times
	}
	issuers := map[string]bool{}
	for start := time.Now(); time.Since(start) < 200*hour; time.Sleep(47 * time.Minute) {
		assertTalk(t, replicas[0], replicas[1])
		assertTalk(t, replicas[1], replicas[0])
		if names == nil {
			continue
		}
		trusted := x509.NewCertPool()
		require.True(t, trusted.AppendCertsFromPEM(replicas[0].CABundle()))
		for _, a := range replicas {
			clientErr, serverErr := peerHandshake(t, &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: trusted, ServerName: servedName}, TLSConfig(a))
			require.NoError(t, clientErr)
			require.NoError(t, serverErr)
			issuers[string(a.serving.Load().issuer.Raw)] = true
		}
		replicas[0].Published(replicas[0].CABundle())
	}
	for _, step := range []step{stepStaged, stepConfirmed, stepPromoted, stepDropped} {
		assert.GreaterOrEqual(t, strings.Count(log.String(), string(step)), 2, step)
	}
	assert.Equal(t, 1, strings.Count(log.String(), string(stepCreated)))
	assert.NotContains(t, log.String(), `"error"`)
	assert.True(t, names == nil || len(issuers) >= 3)
}
