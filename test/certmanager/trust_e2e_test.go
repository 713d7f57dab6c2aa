//go:build e2e

package certmanager

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"overrule.dev/overrule/test/server"
)

// caBundles returns the CA bundles of all webhooks in the configurations.
func caBundles(ctx context.Context) ([][]byte, error) {
	var bundles [][]byte
	var validating admissionregistrationv1.ValidatingWebhookConfiguration
	if err := cluster.Get(ctx, client.ObjectKey{Name: server.Name}, &validating); err != nil {
		return nil, err
	}
	for _, hook := range validating.Webhooks {
		bundles = append(bundles, hook.ClientConfig.CABundle)
	}
	var mutating admissionregistrationv1.MutatingWebhookConfiguration
	if err := cluster.Get(ctx, client.ObjectKey{Name: server.Name}, &mutating); err != nil {
		return nil, err
	}
	for _, hook := range mutating.Webhooks {
		bundles = append(bundles, hook.ClientConfig.CABundle)
	}
	return bundles, nil
}

// awaitInjected waits until all webhooks trust an authority.
func awaitInjected(t *testing.T, ca []byte) {
	t.Helper()
	require.NotEmpty(t, ca)
	var held [][]byte
	var err error
	soon(t, func() bool {
		held, err = caBundles(t.Context()) // an error: not registered yet
		lacks := func(bundle []byte) bool { return !bytes.Contains(bundle, ca) }
		return err == nil && len(held) > 0 && !slices.ContainsFunc(held, lacks)
	}, func() string {
		return fmt.Sprintf("the authority is not injected (%v); there is:\n%s", err, bytes.Join(held, nil))
	})
}

// parsed returns the certificate of a Secret, and checks that the key matches.
func parsed(t *testing.T, secret map[string][]byte) *x509.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(secret[corev1.TLSCertKey], secret[corev1.TLSPrivateKeyKey])
	require.NoError(t, err)
	return pair.Leaf
}
