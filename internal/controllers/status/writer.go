package status

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cache"
)

// fieldManager is the field manager of all writes of a Writer.
const fieldManager = "overrule"

var version = schema.GroupVersion{Group: api.Group, Version: "v1alpha1"}

// resources are the resources whose conditions are written, by kind.
var resources = map[string]string{
	api.KindPolicyProfile:           "policyprofiles",
	api.KindPolicyConstraint:        "policyconstraints",
	api.KindClusterPolicyConstraint: "clusterpolicyconstraints",
}

// Writer keeps the conditions of PolicyProfiles and constraints up to date. It runs on
// the leader.
type Writer struct {
	Client dynamic.Interface
	// Statuses returns the objects with their current conditions. Changed receives a value
	// when its result may have changed.
	Statuses func() []cache.Status
	Changed  <-chan struct{}
	Log      logr.Logger
}

// NeedLeaderElection returns true: a Writer runs on the leader.
func (w *Writer) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable: it writes until ctx ends.
func (w *Writer) Start(ctx context.Context) error {
	backoff := wait.Backoff{Duration: time.Second, Factor: 2, Cap: time.Minute, Steps: 8, Jitter: 0.2}
	delay := backoff
	for ctx.Err() == nil {
		again := time.Hour
		if err := w.write(ctx); err == nil {
			delay = backoff
		} else if ctx.Err() == nil {
			again = delay.Step()
			w.Log.Error(err, "cannot write the status of profiles and constraints", "retry", again.String())
		}
		timer := time.NewTimer(again)
		select {
		case <-ctx.Done():
		case <-w.Changed:
		case <-timer.C:
		}
		timer.Stop()
	}
	return nil
}

// write applies the conditions that differ.
func (w *Writer) write(ctx context.Context) error {
	var errs []error
	for _, s := range w.Statuses() {
		c, differs := condition(s, metav1.Now())
		if !differs {
			continue
		}
		if err := w.apply(ctx, s, c); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.Ref, err))
		}
	}
	return errors.Join(errs...)
}

func (w *Writer) apply(ctx context.Context, s cache.Status, c metav1.Condition) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&c)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{content}}}}
	u.SetGroupVersionKind(version.WithKind(s.Ref.Kind))
	u.SetNamespace(s.Ref.Namespace)
	u.SetName(s.Ref.Name)
	u.SetUID(s.UID) // never a later object of the same name
	options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
	client := w.Client.Resource(version.WithResource(resources[s.Ref.Kind])).Namespace(s.Ref.Namespace)
	_, err = client.ApplyStatus(ctx, s.Ref.Name, u, options)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		w.Log.V(1).Info("object was deleted or replaced", "object", s.Ref.String(), "cause", err.Error())
		return nil
	}
	return err
}
