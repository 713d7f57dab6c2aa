//go:build integration

package certs

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Edits of the Secret while replicas run fail no handshake. The Secret is repaired, and
// the log has the errors and the changes.
func TestEditsOfTheSecretFailNoHandshake(t *testing.T) {
	foreign := newTestSigner(t, epoch)
	expired := newTestSigner(t, at(-200))
	cut := func(key string) func(*corev1.Secret) {
		return func(s *corev1.Secret) { s.Data[key] = truncate(s.Data[key], 30) }
	}
	put := func(cert, key []byte) func(*corev1.Secret) {
		return func(s *corev1.Secret) { s.Data[keyCert], s.Data[keyKey] = cert, key }
	}
	for name, c := range map[string]struct {
		damage  func(*corev1.Secret)
		wantLog []string // empty: nothing to repair
	}{
		"truncated certificate": {cut(keyCert), []string{"tls.crt and tls.key: ", string(stepRestored)}},
		"truncated key":         {cut(keyKey), []string{"tls.crt and tls.key: ", string(stepRestored)}},
		"truncated bundle":      {cut(keyBundle), []string{"ca-bundle.crt: " + ErrNotPEM.Error()}},
		"key of another":        {func(s *corev1.Secret) { s.Data[keyKey] = foreign.keyPEM }, []string{"private key does not match", string(stepRestored)}},
		"swapped":               {func(s *corev1.Secret) { s.Data[keyCert], s.Data[keyKey] = s.Data[keyKey], s.Data[keyCert] }, []string{"tls.crt and tls.key: ", string(stepRestored)}},
		"emptied":               {put(nil, nil), []string{string(stepRestored), string(stepStaged)}},
		"a bundle of others":    {func(s *corev1.Secret) { s.Data[keyBundle] = foreign.certPEM }, nil},
		"no bundle":             {func(s *corev1.Secret) { delete(s.Data, keyBundle) }, nil},
		"an expired authority":  {put(expired.certPEM, expired.keyPEM), []string{string(stepRestored), string(stepStaged)}},
		"keys of other clients": {func(s *corev1.Secret) { s.Data["ca.crt"], s.Data["x"] = []byte("x"), nil }, nil},
		"invalid times":         {func(s *corev1.Secret) { s.Annotations[annotationStagedAt] = "yesterday" }, []string{"annotation overrule.dev/ca-staged-at: "}},
		"no annotations":        {func(s *corev1.Secret) { s.Annotations = nil }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newTestReplicas(t)
			var log logBuffer
			f.log = funcr.New(func(_, args string) { log.WriteString(args + "\n") }, funcr.Options{})
			f.start()
			f.start()
			f.eventually(func() error { return f.allVerify(f.replicas[0].CABundle()) })
			signs := f.stored().current.cert
			defer f.publishFrom(f.replicas[0])()
			f.eventually(func() error { return f.allVerify(f.clientBundle()) })
			finish := f.handshakeContinuously()

			f.edit(c.damage)
			f.eventually(func() error { return f.checkSecret(signs.Raw, log.String(), c.wantLog) })
			shakes, failures := finish()
			assert.Empty(t, failures, "of %d handshakes", shakes)
			assert.NotContains(t, log.String(), "PRIVATE")
		})
	}
}

// edit updates the Secret, and retries on conflicts.
func (f *testReplicas) edit(change func(*corev1.Secret)) {
	f.t.Helper()
	f.eventually(func() error {
		secret, err := f.client.CoreV1().Secrets(f.namespace).Get(f.t.Context(), secretName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(secret)
		_, err = f.client.CoreV1().Secrets(f.namespace).Update(f.t.Context(), secret, metav1.UpdateOptions{})
		return err
	})
}

// checkSecret checks that the Secret is valid and trusts an authority, and that the log
// has the wanted texts.
func (f *testReplicas) checkSecret(trusted []byte, log string, want []string) error {
	secret := f.secret()
	s, err := decode(secret)
	if err != nil {
		return err
	}
	if s.current == nil || !bytes.Equal(s.bundle(), secret.Data[keyBundle]) || !bytes.Contains(s.bundle(), encodeCertificates(trusted)) {
		return fmt.Errorf("the bundle is not complete yet")
	}
	for _, text := range want {
		if !strings.Contains(log, text) {
			return fmt.Errorf("the log lacks %q:\n%s", text, log)
		}
	}
	return nil
}

func TestSecretOfAnotherTypeIsUsed(t *testing.T) {
	f := newTestReplicas(t)
	_, err := f.client.CoreV1().Secrets(f.namespace).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: secretName}, Type: corev1.SecretTypeOpaque,
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	f.start()
	f.eventually(func() error { return f.allVerify(f.replicas[0].CABundle()) })
	assert.Equal(t, f.replicas[0].CABundle(), f.secret().Data[keyBundle])
	assert.Equal(t, corev1.SecretTypeOpaque, f.secret().Type, "it cannot be changed")
}

// It cannot be written any more; its content stays in use.
func TestImmutableSecretIsUsedAndReported(t *testing.T) {
	f := newTestReplicas(t)
	var log logBuffer
	f.log = funcr.New(func(_, args string) { log.WriteString(args + "\n") }, funcr.Options{})
	f.start()
	f.eventually(func() error { return f.allVerify(f.replicas[0].CABundle()) })
	defer f.publishFrom(f.replicas[0])()
	f.eventually(func() error { return f.allVerify(f.clientBundle()) })
	finish := f.handshakeContinuously()
	f.edit(func(s *corev1.Secret) { s.Immutable = new(true); delete(s.Data, keyBundle) })
	f.eventually(func() error {
		if text := log.String(); !strings.Contains(text, "update secret "+f.namespace+"/"+secretName) || !strings.Contains(text, "immutable") {
			return fmt.Errorf("not logged:\n%s", text)
		}
		return nil
	})
	shakes, failures := finish()
	assert.Empty(t, failures, "of %d handshakes", shakes)
	require.NoError(t, f.replicas[0].Healthy(nil))
}
