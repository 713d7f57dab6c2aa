package webhookconfig

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// Arming decides whether failurePolicy may be Fail now.
type Arming interface {
	Armed() bool
	// Changed returns a channel that receives a value when Armed changes.
	Changed() <-chan struct{}
	// Adopt is called once after each start, before anything is written, with whether
	// the existing configurations are armed.
	Adopt(armed bool)
}

// failurePolicy returns the wanted failurePolicy.
func (r *Reconciler) failurePolicy(ctx context.Context) (admissionregistrationv1.FailurePolicyType, error) {
	if r.Arming == nil {
		return r.Configuration.FailurePolicy, nil
	}
	if !r.term.adopted {
		armed, err := r.foundArmed(ctx)
		if err != nil {
			return "", fmt.Errorf("check whether the webhooks are armed: %w", err)
		}
		r.Arming.Adopt(armed)
		r.term.adopted = true
	}
	if r.Arming.Armed() {
		return admissionregistrationv1.Fail, nil
	}
	return admissionregistrationv1.Ignore, nil
}

// foundArmed reports whether both configurations exist and are armed.
func (r *Reconciler) foundArmed(ctx context.Context) (bool, error) {
	both, err := readConfigs(ctx, r.Client, r.Configuration)
	if err != nil {
		return false, err
	}
	found := make(map[string]bool)
	for _, config := range both {
		for _, h := range config.webhooks() {
			if isArmed(h) {
				found[h.Name] = true
			}
		}
	}
	return found[validateWebhook] && found[mutateWebhook], nil // earlier versions did not have versionsWebhook
}

// disarm replaces failurePolicy Fail where it is not allowed, and changes nothing else. It
// is for a leader that cannot write the configurations as a whole, since it knows no
// policy kinds or has no certificate: that is when calls fail.
func (r *Reconciler) disarm(ctx context.Context, cause error) error {
	if r.Arming == nil || r.term.adopted && r.Arming.Armed() {
		return nil
	}
	existing, err := readConfigs(ctx, r.Client, r.Configuration)
	if err != nil {
		return fmt.Errorf("check whether the webhooks are armed: %w", err)
	}
	existing = slices.DeleteFunc(existing, func(config configClient) bool { return !r.ownedByUs(config) })
	if len(existing) == 0 {
		return nil // there is nothing to adopt, either
	}
	if policy, err := r.failurePolicy(ctx); err != nil || policy == admissionregistrationv1.Fail {
		return err
	}
	disarmed := false
	for _, config := range existing {
		changed, err := r.setIgnore(ctx, config)
		if err != nil {
			return fmt.Errorf("disarm %s webhook configuration %s: %w", config.configType, r.Configuration.Name, err)
		}
		disarmed = disarmed || changed
	}
	if !disarmed {
		return nil
	}
	r.setProblem(nil) // of disarming; the caller reports the cause
	r.Log.Info("webhooks disarmed, because their configurations cannot be written", "name", r.Configuration.Name, "cause", cause.Error())
	if r.OnWrite != nil {
		r.OnWrite(admissionregistrationv1.Ignore)
	}
	return nil
}

// ownedByUs reports whether a configuration belongs to an installation in our namespace,
// whatever the name of its Service.
func (r *Reconciler) ownedByUs(config configClient) bool {
	namespace, service, _ := strings.Cut(installationOf(config), "/")
	return service != "" && namespace == r.Configuration.Namespace
}

// setIgnore sets failurePolicy Ignore on the armed webhooks of a configuration, and
// reports whether there were any.
func (r *Reconciler) setIgnore(ctx context.Context, config configClient) (bool, error) {
	const ignore = admissionregistrationv1.Ignore
	var ops []patchOperation
	for i, h := range config.webhooks() {
		if isArmed(h) {
			path := fmt.Sprintf("/webhooks/%d/", i)
			ops = append(ops, patchOperation{"test", path + "name", h.Name}, patchOperation{"replace", path + "failurePolicy", ignore})
		}
	}
	if len(ops) == 0 {
		return false, nil
	}
	if err := config.patchJSON(ctx, ops); err != nil {
		return false, err
	}
	for i, h := range r.term.applied[config.configType] { // otherwise it would count as an edit of others
		if slices.Contains(armable, h.Name) {
			r.term.applied[config.configType][i].FailurePolicy = new(ignore)
		}
	}
	return true, nil
}

// armable are the webhooks to which arming applies: the others never have Fail.
var armable = []string{validateWebhook, mutateWebhook, versionsWebhook}

// isUnarmed reports whether an armable webhook does not have Fail.
func isUnarmed(h webhook) bool { return slices.Contains(armable, h.Name) && !isArmed(h) }

// isArmed reports whether an armable webhook has Fail.
func isArmed(h webhook) bool {
	return slices.Contains(armable, h.Name) && h.FailurePolicy != nil && *h.FailurePolicy == admissionregistrationv1.Fail
}
