package webhookconfig

import (
	"context"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
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
func (r *Reconciler) failurePolicy(ctx context.Context) (admissionregistrationv1.FailurePolicyType, error) {
	if r.Arming == nil {
		return r.Configuration.FailurePolicy, nil
	}
	if !r.adopted {
		armed, err := r.foundArmed(ctx)
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
func (r *Reconciler) foundArmed(ctx context.Context) (bool, error) {
	both, err := readConfigs(ctx, r.Client, r.Configuration)
	if err != nil {
		return false, err
	}
	found := make(map[string]bool)
	for _, d := range both {
		for _, h := range d.webhooks() {
			if isArmed(h) {
				found[h.Name] = true
			}
		}
	}
	return found[validateWebhook] && found[mutateWebhook], nil // versions before did not have the third
}
