package certs

import (
	"context"
	"fmt"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
)

// secretStore reads, writes and watches one Secret.
type secretStore struct {
	client          corev1client.SecretInterface
	namespace, name string
}

// read returns the Secret from the API server, not from a cache; nil if it does not
// exist.
func (s secretStore) read(ctx context.Context) (*corev1.Secret, error) {
	secret, err := s.client.Get(ctx, s.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil // absence is a state, not an error
	}
	if err != nil {
		return nil, fmt.Errorf("read secret %s/%s: %w", s.namespace, s.name, err)
	}
	return secret, nil
}

// write updates the Secret with encode. stored is what read returned; if the Secret
// has changed since, write returns ErrContended. A new Secret has the type kind.
func (s secretStore) write(ctx context.Context, stored *corev1.Secret, kind corev1.SecretType, encode func(*corev1.Secret)) error {
	if stored == nil {
		return s.create(ctx, kind, encode)
	}
	wanted := stored.DeepCopy()
	encode(wanted)
	if equality.Semantic.DeepEqual(stored, wanted) {
		return nil
	}
	_, err := s.client.Update(ctx, wanted, metav1.UpdateOptions{})
	switch {
	case err == nil:
		return nil
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return fmt.Errorf("update secret %s/%s: %w: %w", s.namespace, s.name, ErrContended, err)
	}
	return fmt.Errorf("update secret %s/%s: %w", s.namespace, s.name, err)
}

func (s secretStore) create(ctx context.Context, kind corev1.SecretType, encode func(*corev1.Secret)) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.name},
		Type:       kind,
	}
	encode(secret)
	_, err := s.client.Create(ctx, secret, metav1.CreateOptions{})
	switch {
	case err == nil:
		return nil
	case apierrors.IsAlreadyExists(err):
		return fmt.Errorf("create secret %s/%s: %w: %w", s.namespace, s.name, ErrContended, err)
	}
	return fmt.Errorf("create secret %s/%s: %w", s.namespace, s.name, err)
}

// watch calls notify at each change of the Secret until ctx ends. Callers then read
// the Secret from the API server, so a late event cannot bring back an old state.
func (s secretStore) watch(ctx context.Context, log logr.Logger, notify func()) {
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		Logger:        &log,
		ListerWatcher: s.listerWatcher(),
		ObjectType:    &corev1.Secret{},
		Transform:     withoutContent,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { notify() },
			UpdateFunc: func(any, any) { notify() },
			DeleteFunc: func(any) { notify() },
		},
	})
	informer.RunWithContext(ctx)
}

// listerWatcher lists and watches the one Secret, so that RBAC can be limited to it.
func (s secretStore) listerWatcher() cache.ListerWatcher {
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, s.name).String()
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			opts.FieldSelector = selector
			return s.client.List(ctx, opts)
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			opts.FieldSelector = selector
			return s.client.Watch(ctx, opts)
		},
	}
}

// withoutContent keeps private keys out of the informer's cache, which is not read.
func withoutContent(obj any) (any, error) {
	if secret, ok := obj.(*corev1.Secret); ok {
		return &corev1.Secret{TypeMeta: secret.TypeMeta, ObjectMeta: secret.ObjectMeta}, nil
	}
	return obj, nil
}
