package server

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	crmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/controllers/audit"
)

func (a *app) addAuditor() error {
	auditor := audit.New(audit.Options{
		Store: a.store, Violations: a.guard.Violations, Leading: a.leading,
		Events: a.manager.GetEventRecorder("overrule"), Locate: locate(a.manager.GetAPIReader()), Log: a.log.WithName("audit"),
	})
	a.guard.UnmetSince = auditor.UnmetSince
	return errors.Join(crmetrics.Registry.Register(auditor), a.manager.Add(auditor))
}

// locate returns a function that reads the uid of an object from the API server.
func locate(reader client.Reader) audit.Locate {
	return func(ctx context.Context, ref api.Ref) (*corev1.ObjectReference, error) {
		o := &metav1.PartialObjectMetadata{}
		o.SetGroupVersionKind(schema.GroupVersionKind{Group: ref.Group, Version: "v1", Kind: ref.Kind})
		if err := reader.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, o); err != nil {
			return nil, fmt.Errorf("get %s: %w", ref, err)
		}
		return &corev1.ObjectReference{
			APIVersion: o.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, UID: o.UID,
		}, nil
	}
}
