//go:build e2e

package e2e

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"overrule.dev/overrule/test/server"
)

// dialVerified dials a server as an API server does, with the CA bundle of the
// webhook configuration.
func (c *cluster) dialVerified(t *testing.T, s *server.Server) error {
	t.Helper()
	client, err := kubernetes.NewForConfig(c.Config)
	require.NoError(t, err)
	hooks, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(t.Context(), server.Name, metav1.GetOptions{})
	require.NoError(t, err)
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(hooks.Webhooks[0].ClientConfig.CABundle))
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: "overrule.overrule-system.svc", MinVersion: tls.VersionTLS13}}
	conn, err := dialer.DialContext(t.Context(), "tcp", s.Webhook)
	if err == nil {
		_ = conn.Close()
	}
	return err
}

// boot runs a replica behind a proxy and does not wait until it is called.
func (c *cluster) boot(t *testing.T, r interface{ flag() string }, args ...string) *server.Server {
	t.Helper()
	args = append([]string{"--log-level=debug", "--drain-period=2s", r.flag()}, args...)
	s := server.Start(t, c.Env, server.Options{Unprobed: true, Args: args})
	t.Cleanup(func() { requireNoPanic(t, s) })
	return s
}

// stream is a set of writers that write in a loop, and their failures.
type stream struct {
	writes atomic.Int64
	end    func()

	mu     sync.Mutex
	failed []string
}

// writeInterval is the time between two writes of a writer: other tests need the CPU, too.
const writeInterval = 100 * time.Millisecond

// startWriters starts writers, each with its own policy.
func startWriters(t *testing.T, g testNamespaces, writers int) *stream {
	t.Helper()
	s := &stream{}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	s.end = func() {
		cancel()
		group.Wait()
	}
	t.Cleanup(s.end)
	config := rest.CopyConfig(g.c.Config)
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	policies := client.Resource(schema.GroupVersionResource{Group: "kuadrant.io", Version: "v1", Resource: "ratelimitpolicies"}).Namespace(g.app)
	for i := range writers {
		group.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				s.done(writeOne(policies, g, fmt.Sprintf("stream-%d", i), n))
				time.Sleep(writeInterval)
			}
		})
	}
	return s
}

// writeOne creates, edits or deletes a policy, in turn. It is not canceled when
// the stream ends.
func writeOne(policies dynamic.ResourceInterface, g testNamespaces, name string, n int) error {
	ctx := context.Background()
	switch n % 3 {
	case 0:
		var object unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(g.expand(limits("name: "+name, 20))), &object.Object); err != nil {
			return err
		}
		_, err := policies.Create(ctx, &object, metav1.CreateOptions{})
		return err
	case 1:
		_, err := policies.Patch(ctx, name, types.MergePatchType, []byte(`{"spec":{"limits":{"more":{}}}}`), metav1.PatchOptions{})
		return err
	default:
		return policies.Delete(ctx, name, metav1.DeleteOptions{})
	}
}

func (s *stream) done(err error) {
	s.writes.Add(1)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.failed = append(s.failed, err.Error())
	}
}

func (s *stream) failures() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}
