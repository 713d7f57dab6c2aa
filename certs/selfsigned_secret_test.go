package certs

import (
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// newStoredSecret returns a Secret in the middle of a rotation.
func newStoredSecret(t *testing.T) (*corev1.Secret, state) {
	t.Helper()
	s := state{
		current: newTestSigner(t, at(60)), next: newTestSigner(t, at(120)),
		retired:  []*x509.Certificate{newTestSigner(t, epoch).cert},
		stagedAt: at(120), publishedAt: at(121).Add(time.Nanosecond), retiredUntil: at(130), leafValidity: 10 * hour,
	}
	secret := withMaps(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: "ca"}})
	encode(s, secret)
	return secret, s
}

func TestSecretRoundTrip(t *testing.T) {
	secret, s := newStoredSecret(t)
	got, err := decode(secret)
	require.NoError(t, err)
	assert.Equal(t, s, got)
}

func TestSecretKeepsOtherKeys(t *testing.T) {
	_, s := newStoredSecret(t)
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": "b", annotationStagedAt: "old"}},
		Data:       map[string][]byte{"theirs": []byte("x"), keyNextCert: []byte("old"), keyNextKey: []byte("old")},
	}
	encode(s.withoutNext(), secret)
	assert.Equal(t, []byte("x"), secret.Data["theirs"])
	assert.Equal(t, "b", secret.Annotations["a"])
	assert.NotContains(t, secret.Data, keyNextCert)
	assert.NotContains(t, secret.Data, keyNextKey)
	assert.NotContains(t, secret.Annotations, annotationStagedAt)
}

func TestDecodeEmptySecret(t *testing.T) {
	for name, secret := range map[string]*corev1.Secret{"empty": {}, "made ahead, by a chart": {Data: map[string][]byte{keyCert: {}, keyKey: {}}}} {
		t.Run(name, func(t *testing.T) {
			s, err := decode(secret)
			require.NoError(t, err)
			assert.Equal(t, state{}, s)
		})
	}
}

func TestDecodeInvalidParts(t *testing.T) {
	_, foreign := newStoredSecret(t)
	serving, err := issueLeaf(foreign.current, serverFor("a"), hour, at(61))
	require.NoError(t, err)
	servingPEM := encodeCertificates(serving.tls.Leaf)

	tests := map[string]struct {
		breakIt func(*corev1.Secret)
		lost    func(*state)
		wantErr string
	}{
		"a certificate that is no PEM": {
			breakIt: func(s *corev1.Secret) { s.Data[keyCert] = []byte("x") },
			lost:    removeCurrent,
			wantErr: "tls.crt and tls.key: ",
		},
		"a key that is missing": {
			breakIt: func(s *corev1.Secret) { delete(s.Data, keyKey) },
			lost:    removeCurrent,
			wantErr: "tls.crt and tls.key: ",
		},
		"a key of another certificate": {
			breakIt: func(s *corev1.Secret) { s.Data[keyKey] = s.Data[keyNextKey] },
			lost:    removeCurrent,
			wantErr: "does not match",
		},
		"a staged certificate that is no authority": {
			breakIt: func(s *corev1.Secret) {
				key, err := x509.MarshalPKCS8PrivateKey(serving.tls.PrivateKey)
				require.NoError(t, err)
				s.Data[keyNextCert], s.Data[keyNextKey] = servingPEM, pemOfKey(key)
			},
			lost:    func(s *state) { s.retired = append([]*x509.Certificate{s.next.cert}, s.retired...); s.next = nil },
			wantErr: "next.crt and next.key: ",
		},
		"a bundle that is no PEM": {
			breakIt: func(s *corev1.Secret) { s.Data[keyBundle] = []byte("x") },
			lost:    func(s *state) { s.retired = nil },
			wantErr: "ca-bundle.crt: ",
		},
		"a bundle with something else in it": {
			breakIt: func(s *corev1.Secret) { s.Data[keyBundle] = append(s.Data[keyBundle], servingPEM...) },
			lost:    func(*state) {},
			wantErr: "ca-bundle.crt: ",
		},
		"a bundle with a broken certificate in it": {
			breakIt: func(s *corev1.Secret) {
				s.Data[keyBundle] = append(s.Data[keyBundle], pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: []byte("x")})...)
			},
			lost:    func(*state) {},
			wantErr: "ca-bundle.crt: ",
		},
		"an invalid time": {
			breakIt: func(s *corev1.Secret) { s.Annotations[annotationStagedAt] = "soon" },
			lost:    func(s *state) { s.stagedAt = time.Time{} },
			wantErr: "annotation overrule.dev/ca-staged-at: parsing time \"soon\"",
		},
		"an invalid lifetime": {
			breakIt: func(s *corev1.Secret) { s.Annotations[annotationLeafValidity] = "long" },
			lost:    func(s *state) { s.leafValidity = 0 },
			wantErr: "annotation overrule.dev/leaf-validity",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			secret, want := newStoredSecret(t)
			test.breakIt(secret)
			test.lost(&want)
			got, err := decode(secret)
			assert.ErrorContains(t, err, test.wantErr)
			assert.Equal(t, want, got)
			assert.NotContains(t, err.Error(), keyText(secret), "an error must not contain a key")
		})
	}
}

func removeCurrent(s *state) {
	s.retired = append([]*x509.Certificate{s.current.cert}, s.retired...)
	s.current = nil
}

// keyText returns a line of the staged key.
func keyText(secret *corev1.Secret) string {
	lines := strings.Split(string(secret.Data[keyNextKey]), "\n")
	if len(lines) < 2 {
		return "no key"
	}
	return lines[1]
}
