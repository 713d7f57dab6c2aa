package certs

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// ErrContended is in the error of a write that conflicts with another one.
var ErrContended = errors.New("concurrent update")

// secretStore reads and writes one Secret.
type secretStore struct {
	client          corev1client.SecretInterface
	namespace, name string
}

// wrap adds the Secret and what was done with it.
func (s secretStore) wrap(act string, err error) error {
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) && act == "update" {
		err = fmt.Errorf("%w: %w", ErrContended, err)
	}
	return fmt.Errorf("%s secret %s/%s: %w", act, s.namespace, s.name, err)
}

// read returns the Secret from the API server, not from a cache; an empty one if it does
// not exist.
func (s secretStore) read(ctx context.Context) (*corev1.Secret, error) {
	secret, err := s.client.Get(ctx, s.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.name}}, nil
	case err != nil:
		return nil, s.wrap("read", err)
	}
	return secret, nil
}

// write creates or updates the Secret with encode. stored is what read returned; if the
// Secret has changed since, write returns ErrContended. A new Secret has the type kind.
func (s secretStore) write(ctx context.Context, stored *corev1.Secret, kind corev1.SecretType, encode func(*corev1.Secret)) error {
	wanted := withMaps(stored)
	encode(wanted)
	switch {
	case stored.ResourceVersion == "":
		wanted.Type = kind
		if _, err := s.client.Create(ctx, wanted, metav1.CreateOptions{}); err != nil {
			return s.wrap("create", err)
		}
	case !equality.Semantic.DeepEqual(stored, wanted):
		if _, err := s.client.Update(ctx, wanted, metav1.UpdateOptions{}); err != nil {
			return s.wrap("update", err)
		}
	}
	return nil
}

// withMaps returns a copy of a Secret, with data and annotations to write to.
func withMaps(secret *corev1.Secret) *corev1.Secret {
	out := secret.DeepCopy()
	if out.Data == nil {
		out.Data = map[string][]byte{}
	}
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	return out
}
