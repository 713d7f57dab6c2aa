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

// vault reads and writes the one Secret.
type secretStore struct {
	client          corev1client.SecretInterface
	namespace, name string
}

// read returns the Secret as the API server's storage has it now, not as a
// cache does; nil if there is none.
func (v secretStore) read(ctx context.Context) (*corev1.Secret, error) {
	secret, err := v.client.Get(ctx, v.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil // absence is an answer, and a state of its own
	}
	if err != nil {
		return nil, fmt.Errorf("read secret %s/%s: %w", v.namespace, v.name, err)
	}
	return secret, nil
}

// write makes the Secret what encode does of it, if found, which read returned,
// is still what is stored; ErrContended if it is not. A new one is of type kind.
func (v secretStore) write(ctx context.Context, stored *corev1.Secret, kind corev1.SecretType, encode func(*corev1.Secret)) error {
	if stored == nil {
		return v.create(ctx, kind, encode)
	}
	wanted := stored.DeepCopy()
	encode(wanted)
	if equality.Semantic.DeepEqual(stored, wanted) {
		return nil
	}
	_, err := v.client.Update(ctx, wanted, metav1.UpdateOptions{})
	switch {
	case err == nil:
		return nil
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return fmt.Errorf("update secret %s/%s: %w: %w", v.namespace, v.name, ErrContended, err)
	}
	return fmt.Errorf("update secret %s/%s: %w", v.namespace, v.name, err)
}

func (v secretStore) create(ctx context.Context, kind corev1.SecretType, encode func(*corev1.Secret)) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: v.namespace, Name: v.name},
		Type:       kind,
	}
	encode(secret)
	_, err := v.client.Create(ctx, secret, metav1.CreateOptions{})
	switch {
	case err == nil:
		return nil
	case apierrors.IsAlreadyExists(err):
		return fmt.Errorf("create secret %s/%s: %w: %w", v.namespace, v.name, ErrContended, err)
	}
	return fmt.Errorf("create secret %s/%s: %w", v.namespace, v.name, err)
}

// watch hints at every change of the Secret until ctx ends. An event says only
// that there is something to read: the loop reads the storage itself, so a
// late event can never bring an old state back.
func (v secretStore) watch(ctx context.Context, log logr.Logger, hint func()) {
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		Logger:        &log,
		ListerWatcher: v.listerWatcher(),
		ObjectType:    &corev1.Secret{},
		Transform:     withoutContent,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { hint() },
			UpdateFunc: func(any, any) { hint() },
			DeleteFunc: func(any) { hint() },
		},
	})
	informer.RunWithContext(ctx)
}

// listerWatcher sees the one Secret, as far as the rights go.
func (v secretStore) listerWatcher() cache.ListerWatcher {
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, v.name).String()
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			opts.FieldSelector = selector
			return v.client.List(ctx, opts)
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			opts.FieldSelector = selector
			return v.client.Watch(ctx, opts)
		},
	}
}

// withoutContent keeps keys out of the informer's cache, which nobody reads.
func withoutContent(obj any) (any, error) {
	if secret, ok := obj.(*corev1.Secret); ok {
		return &corev1.Secret{TypeMeta: secret.TypeMeta, ObjectMeta: secret.ObjectMeta}, nil
	}
	return obj, nil
}
