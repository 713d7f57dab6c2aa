package webhook

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Arming says whether failurePolicy may be Fail just now.
type Arming interface {
	Armed() bool
	// Changed returns a channel that has something when Armed reports otherwise.
	Changed() <-chan struct{}
	// Adopt tells once, before anything is written, whether what a leader before
	// has left is armed.
	Adopt(armed bool)
}

// failurePolicy returns what is to stand in the configurations.
func (r *Registrar) failurePolicy(ctx context.Context) (admissionregistrationv1.FailurePolicyType, error) {
	if r.Arming == nil {
		return r.Configuration.FailurePolicy, nil
	}
	if !r.adopted {
		armed, err := r.leftArmed(ctx)
		if err != nil {
			return "", fmt.Errorf("look whether the webhooks are armed: %w", err)
		}
		r.Arming.Adopt(armed)
		r.adopted = true
	}
	if r.Arming.Armed() {
		return admissionregistrationv1.Fail, nil
	}
	return admissionregistrationv1.Ignore, nil
}

// leftArmed reports whether both configurations are there and armed.
func (r *Registrar) leftArmed(ctx context.Context) (bool, error) {
	hooks, name := r.Client.AdmissionregistrationV1(), r.Configuration.Name
	m, errMutating := hooks.MutatingWebhookConfigurations().Get(ctx, name, metav1.GetOptions{})
	v, errValidating := hooks.ValidatingWebhookConfigurations().Get(ctx, name, metav1.GetOptions{})
	for _, err := range []error{errMutating, errValidating} {
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	policies := map[string]*admissionregistrationv1.FailurePolicyType{}
	for _, h := range m.Webhooks {
		policies[h.Name] = h.FailurePolicy
	}
	for _, h := range v.Webhooks {
		policies[h.Name] = h.FailurePolicy
	}
	for _, hook := range armable {
		if p := policies[hook]; p == nil || *p != admissionregistrationv1.Fail {
			return false, nil
		}
	}
	return true, nil
}
