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
	"overrule.dev/overrule/internal/watch"
)

// fieldManager owns what a Writer writes.
const fieldManager = "overrule"

var resource = schema.GroupVersionResource{Group: api.Group, Version: "v1alpha1", Resource: "policyprofiles"}

// Writer keeps the conditions of the PolicyProfiles as they should be. It runs
// on the leader.
type Writer struct {
	Client dynamic.Interface
	// Profiles returns the profiles with the conditions that they have, and
	// Changed tells that it returns something else.
	Profiles func() []watch.ProfileStatus
	Changed  <-chan struct{}
	Log      logr.Logger
}

// NeedLeaderElection tells controller-runtime to run a Writer on the leader.
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
			w.Log.Error(err, "write the status of policy profiles", "retry", again.String())
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

// write writes what differs from what a profile has.
func (w *Writer) write(ctx context.Context) error {
	var errs []error
	for _, p := range w.Profiles() {
		c, differs := condition(p, metav1.Now())
		if !differs {
			continue
		}
		if err := w.apply(ctx, p, c); err != nil {
			errs = append(errs, fmt.Errorf("PolicyProfile %s: %w", p.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (w *Writer) apply(ctx context.Context, p watch.ProfileStatus, c metav1.Condition) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&c)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{content}}}}
	u.SetGroupVersionKind(resource.GroupVersion().WithKind(api.KindPolicyProfile))
	u.SetName(p.Name)
	u.SetUID(p.UID) // never one of the same name that came after it
	options := metav1.ApplyOptions{FieldManager: fieldManager, Force: true}
	_, err = w.Client.Resource(resource).ApplyStatus(ctx, p.Name, u, options)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		w.Log.V(1).Info("a profile is gone or is another one", "profile", p.Name, "cause", err.Error())
		return nil
	}
	return err
}
