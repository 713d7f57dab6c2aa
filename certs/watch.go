package certs

import (
	"context"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// watch hints at every change of the Secret until ctx ends. An event says only
// that there is something to read: the loop reads the storage itself, so a
// late event can never bring an old state back.
func (v vault) watch(ctx context.Context, log logr.Logger, hint func()) {
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
func (v vault) listerWatcher() cache.ListerWatcher {
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
