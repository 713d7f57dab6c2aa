package certs

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Keys and annotations of the Secret. The first two are those of its type,
// kubernetes.io/tls:
//
//	tls.crt, tls.key    the authority that signs
//	next.crt, next.key  the staged one
//	ca-bundle.crt       every authority to trust: signing, staged, retired
//
// The times of the phases are in annotations. A Secret that is deleted or invalid is
// written again. A replica that has the authority in memory restores it, and stages
// a new one (so deleting the Secret forces a rotation). Any other replica creates a
// new authority.
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

// decode returns the state that secret records. The error joins those of all invalid
// parts; the state has the valid parts.
func decode(secret *corev1.Secret) (state, error) {
	var s state
	var errs [5]error
	s.current, errs[0] = decodeSigner(secret.Data, keyCert, keyKey)
	s.next, errs[1] = decodeSigner(secret.Data, keyNextCert, keyNextKey)
	if data := secret.Data[keyBundle]; len(data) > 0 {
		certs, err := parseAuthorities(data)
		errs[2] = inPart(keyBundle, err)
		for _, cert := range certs {
			if !s.trusts(cert) {
				s.retired = append(s.retired, cert)
			}
		}
	}
	for name, at := range s.timestamps() {
		if text, ok := secret.Annotations[name]; ok {
			var err error
			*at, err = time.Parse(time.RFC3339Nano, text)
			errs[3] = errors.Join(errs[3], inPart("annotation "+name, err))
		}
	}
	if text, ok := secret.Annotations[annotationLeafValidity]; ok {
		validity, err := time.ParseDuration(text)
		s.leafValidity, errs[4] = max(0, validity), inPart("annotation "+annotationLeafValidity, err)
	}
	return s, errors.Join(errs[:]...)
}

// decodeSigner decodes a certificate and its key. It is no error if both are missing.
func decodeSigner(data map[string][]byte, certKey, keyKey string) (*signer, error) {
	if len(data[certKey]) == 0 && len(data[keyKey]) == 0 {
		return nil, nil
	}
	s, err := parseSigner(data[certKey], data[keyKey])
	if err != nil {
		return nil, inPart(certKey+" and "+keyKey, err)
	}
	return s, nil
}

// inPart adds the part of the Secret to an error, if there is one.
func inPart(name string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// encode writes s into secret and keeps all other keys and annotations.
func encode(s state, secret *corev1.Secret) {
	encodeSigner(s.current, secret.Data, keyCert, keyKey)
	encodeSigner(s.next, secret.Data, keyNextCert, keyNextKey)
	secret.Data[keyBundle] = s.bundle()
	for name, at := range s.timestamps() {
		delete(secret.Annotations, name)
		if !at.IsZero() {
			secret.Annotations[name] = at.UTC().Format(time.RFC3339Nano)
		}
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
