//go:build integration

package certs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"overrule.dev/overrule/test/env"
)

var apiServer *rest.Config

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	plane, err := env.Boot(context.Background(), env.WithoutCRDs())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	apiServer = plane.Config
	code := m.Run()
	if err := plane.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// Replicas that start at once agree on one authority, and restore a Secret that is deleted
// or damaged.
func TestReplicasShareAnAuthority(t *testing.T) {
	client, err := kubernetes.NewForConfig(apiServer)
	require.NoError(t, err)
	const namespace, name = "own", "overrule-ca"
	var replicas []*Authority
	for range 5 {
		a := New(Options{Secrets: client.CoreV1(), Namespace: namespace, SecretName: name, Names: ServiceNames("overrule", namespace), PollInterval: 100 * time.Millisecond, Log: logr.Discard()})
		replicas = append(replicas, a)
		go func() { _ = a.Start(t.Context()) }()
	}
	eventually := func(check func() error) {
		t.Helper()
		require.Eventually(t, func() bool { err = check(); return err == nil }, env.Patience, 10*time.Millisecond)
	}
	eventually(func() error {
		if err := replicas[0].Healthy(nil); err == nil || !errors.Is(err, ErrNotReady) || replicas[0].failure() == nil {
			return errors.New("the missing namespace is not reported")
		}
		return nil
	})
	require.ErrorContains(t, replicas[0].Healthy(nil), `namespaces "own" not found`)
	_, err = client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	require.NoError(t, err)

	secrets := client.CoreV1().Secrets(namespace)
	stored := func(authorities int) error {
		secret, err := secrets.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		s, err := decode(secret)
		if err != nil || s.current == nil || len(s.trusted()) != authorities || secret.Type != corev1.SecretTypeTLS {
			return fmt.Errorf("%d authorities stored: %w", len(s.trusted()), err)
		}
		for _, a := range replicas {
			if string(a.CABundle()) != string(secret.Data[keyBundle]) {
				return errors.New("a replica has another bundle")
			}
		}
		return nil
	}
	eventually(func() error { return stored(1) })
	first := replicas[0].CABundle()

	require.NoError(t, secrets.Delete(t.Context(), name, metav1.DeleteOptions{}))
	eventually(func() error { return stored(2) })
	assert.Equal(t, string(first), string(replicas[0].CABundle()[:len(first)]), "clients have no other bundle yet")

	_, err = secrets.Patch(t.Context(), name, "application/merge-patch+json", []byte(`{"data":{"tls.key":"eA=="}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	eventually(func() error { return stored(2) })
	assert.Equal(t, string(first), string(replicas[0].CABundle()[:len(first)]))
}
