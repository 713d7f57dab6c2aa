package certs

import (
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Keys and annotations of the Secret. The first two are those of its type,
// kubernetes.io/tls.
const (
	keyCert     = corev1.TLSCertKey
	keyKey      = corev1.TLSPrivateKeyKey
	keyNextCert = "next.crt"
	keyNextKey  = "next.key"
	keyBundle   = "ca-bundle.crt"

	annotationStagedAt     = "overrule.dev/ca-staged-at"
	annotationPublishedAt  = "overrule.dev/ca-published-at"
	annotationRetiredUntil = "overrule.dev/ca-retired-until"
	annotationLeafValidity = "overrule.dev/leaf-validity"
)

// timestamps returns the times of s by their annotation.
func (s *state) timestamps() map[string]*time.Time {
	return map[string]*time.Time{
		annotationStagedAt:     &s.stagedAt,
		annotationPublishedAt:  &s.publishedAt,
		annotationRetiredUntil: &s.retiredUntil,
	}
}

// decode returns the state that secret records; nil records nothing. The error joins
// a SecretError for each invalid part; the state has the valid parts.
func decode(secret *corev1.Secret) (state, error) {
	if secret == nil {
		return state{}, nil
	}
	r := secretDecoder{secret: secret}
	s := state{current: r.signer(keyCert, keyKey), next: r.signer(keyNextCert, keyNextKey)}
	for _, cert := range r.bundle() {
		if !s.trusts(cert) {
			s.retired = append(s.retired, cert)
		}
	}
	r.timestamps(&s)
	return s, errors.Join(r.errs...)
}

// secretDecoder decodes the parts of a Secret and collects their errors.
type secretDecoder struct {
	secret *corev1.Secret
	errs   []error
}

func (r *secretDecoder) addError(key string, err error) {
	r.errs = append(r.errs, &SecretError{Namespace: r.secret.Namespace, Name: r.secret.Name, Key: key, Err: err})
}

// signer decodes a certificate and its key. It is no error if both are missing.
func (r *secretDecoder) signer(certKey, keyKey string) *signer {
	cert, key := r.secret.Data[certKey], r.secret.Data[keyKey]
	if len(cert) == 0 && len(key) == 0 {
		return nil
	}
	s, err := parseSigner(cert, key)
	if err != nil {
		r.addError(certKey+" and "+keyKey, err)
		return nil
	}
	return s
}

func (r *secretDecoder) bundle() []*x509.Certificate {
	data := r.secret.Data[keyBundle]
	if len(data) == 0 {
		return nil
	}
	certs, err := parseBundle(data)
	if err != nil {
		r.addError(keyBundle, err)
	}
	return certs
}

func (r *secretDecoder) timestamps(s *state) {
	moments := s.timestamps()
	for _, name := range slices.Sorted(maps.Keys(moments)) {
		if text, ok := r.secret.Annotations[name]; ok {
			*moments[name] = parseAnnotation(r, name, text, func(text string) (time.Time, error) { return time.Parse(time.RFC3339Nano, text) })
		}
	}
	if text, ok := r.secret.Annotations[annotationLeafValidity]; ok {
		s.leafValidity = max(0, parseAnnotation(r, annotationLeafValidity, text, time.ParseDuration))
	}
}

// parseAnnotation returns the parsed text, or zero after adding an error.
func parseAnnotation[T any](r *secretDecoder, name, text string, parse func(string) (T, error)) T {
	value, err := parse(text)
	if err != nil {
		r.addError("annotation "+name, fmt.Errorf("read %q: %w", text, err))
	}
	return value
}

// encode writes s into secret and keeps all other keys and annotations.
func encode(s state, secret *corev1.Secret) {
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	if secret.Annotations == nil {
		secret.Annotations = map[string]string{}
	}
	encodeSigner(s.current, secret.Data, keyCert, keyKey)
	encodeSigner(s.next, secret.Data, keyNextCert, keyNextKey)
	secret.Data[keyBundle] = s.bundle()
	for name, at := range s.timestamps() {
		encodeTimestamp(*at, secret.Annotations, name)
	}
	secret.Annotations[annotationLeafValidity] = s.leafValidity.String()
}

func encodeSigner(s *signer, data map[string][]byte, certKey, keyKey string) {
	if s == nil {
		delete(data, certKey)
		delete(data, keyKey)
		return
	}
	data[certKey], data[keyKey] = s.certPEM, s.keyPEM
}

func encodeTimestamp(at time.Time, annotations map[string]string, name string) {
	if at.IsZero() {
		delete(annotations, name)
		return
	}
	annotations[name] = at.UTC().Format(time.RFC3339Nano)
}
