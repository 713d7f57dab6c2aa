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

// Whatever a hand does to the Secret while replicas run: no handshake fails, the
// Secret is whole again, and the log tells what was found and what was done.
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
		damage func(*corev1.Secret)
		says   []string // none: nothing is damaged, and nothing is to be done
	}{
		"the certificate cut off": {cut(keyCert), []string{"tls.crt and tls.key: ", string(stepRestored)}},
		"the key cut off":         {cut(keyKey), []string{"tls.crt and tls.key: ", string(stepRestored)}},
		"the bundle cut off":      {cut(keyBundle), []string{"ca-bundle.crt: no PEM certificate found"}},
		"key of another":          {func(s *corev1.Secret) { s.Data[keyKey] = foreign.keyPEM }, []string{"private key does not match", string(stepRestored)}},
		"swapped":                 {func(s *corev1.Secret) { s.Data[keyCert], s.Data[keyKey] = s.Data[keyKey], s.Data[keyCert] }, []string{"tls.crt and tls.key: ", string(stepRestored)}},
		"emptied":                 {put(nil, nil), []string{string(stepRestored), string(stepStaged)}},
		"a bundle of others":      {func(s *corev1.Secret) { s.Data[keyBundle] = foreign.certPEM }, nil},
		"no bundle":               {func(s *corev1.Secret) { delete(s.Data, keyBundle) }, nil},
		"an expired authority":    {put(expired.certPEM, expired.keyPEM), []string{string(stepRestored), string(stepStaged)}},
		"keys of somebody else":   {func(s *corev1.Secret) { s.Data["ca.crt"], s.Data["x"] = []byte("x"), nil }, nil},
		"moments that are none":   {func(s *corev1.Secret) { s.Annotations[annotationStagedAt] = "yesterday" }, []string{"annotation overrule.dev/ca-staged-at: "}},
		"no annotations":          {func(s *corev1.Secret) { s.Annotations = nil }, nil},
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
			f.eventually(func() error { return f.checkSecret(signs.Raw, log.String(), c.says) })
			shakes, failures := finish()
			assert.Empty(t, failures, "of %d handshakes", shakes)
			assert.NotContains(t, log.String(), "PRIVATE")
		})
	}
}

// edit is a hand that edits the Secret, whatever the replicas do meanwhile.
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

// whole checks that the Secret can be read, trusts an authority, and that the
// log says what it has to.
func (f *testReplicas) checkSecret(trusted []byte, log string, says []string) error {
	secret := f.secret()
	s, err := decode(secret)
	if err != nil {
		return err
	}
	if s.current == nil || !bytes.Equal(s.bundle(), secret.Data[keyBundle]) || !bytes.Contains(s.bundle(), encodeCertificates(trusted)) {
		return fmt.Errorf("the bundle is not whole yet")
	}
	for _, text := range says {
		if !strings.Contains(log, text) {
			return fmt.Errorf("the log does not say %q:\n%s", text, log)
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

// Nobody can write it any more; what it says stays good.
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
			return fmt.Errorf("it does not say so:\n%s", text)
		}
		return nil
	})
	shakes, failures := finish()
	assert.Empty(t, failures, "of %d handshakes", shakes)
	require.NoError(t, f.replicas[0].Healthy(nil))
}
