package webhookconfig

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// disarm takes failurePolicy Fail away where it may not be, and leaves all else
// as it is. It is for a leader that cannot write the configurations as a whole,
// since it knows no kinds or has no certificate: that is when writes fail.
func (r *Reconciler) disarm(ctx context.Context, because error) error {
	if r.Arming == nil || r.adopted && r.Arming.Armed() {
		return nil
	}
	found, err := readConfigs(ctx, r.Client, r.Configuration)
	if err != nil {
		return fmt.Errorf("look whether the webhooks are armed: %w", err)
	}
	found = slices.DeleteFunc(found, func(d configClient) bool { return !r.ownedByUs(d) })
	if len(found) == 0 {
		return nil // nor is there anything to adopt
	}
	if policy, err := r.failurePolicy(ctx); err != nil || policy == admissionregistrationv1.Fail {
		return err
	}
	disarmed := false
	for _, d := range found {
		did, err := r.setIgnore(ctx, d)
		if err != nil {
			return fmt.Errorf("disarm the %s webhook configuration %s: %w", d.configType, r.Configuration.Name, err)
		}
		disarmed = disarmed || did
	}
	if !disarmed {
		return nil
	}
	r.setProblem(nil) // that it could not be done is over; why the rest cannot be is told after this
	r.Log.Info("disarmed the webhooks, whose configurations cannot be written as a whole", "name", r.Configuration.Name, "because", because.Error())
	if r.OnWrite != nil {
		r.OnWrite(admissionregistrationv1.Ignore)
	}
	return nil
}

// ours reports whether a configuration is for this installation to write,
// whatever its Service was called before.
func (r *Reconciler) ownedByUs(d configClient) bool {
	namespace, service, _ := strings.Cut(installationOf(d), "/")
	return service != "" && namespace == r.Configuration.Namespace
}

// loosen writes failurePolicy Ignore to those webhooks of a configuration that
// are armed, and reports whether there were any.
func (r *Reconciler) setIgnore(ctx context.Context, d configClient) (bool, error) {
	const ignore = admissionregistrationv1.Ignore
	var ops []patchOperation
	for i, h := range d.webhooks() {
		if isArmed(h) {
			at := fmt.Sprintf("/webhooks/%d/", i)
			ops = append(ops, patchOperation{"test", at + "name", h.Name}, patchOperation{"replace", at + "failurePolicy", ignore})
		}
	}
	if len(ops) == 0 {
		return false, nil
	}
	if err := d.patchJSON(ctx, ops); err != nil {
		return false, err
	}
	for i, h := range r.applied[d.configType] { // or it would be taken for what others did
		if slices.Contains(armable, h.Name) {
			r.applied[d.configType][i].FailurePolicy = new(ignore)
		}
	}
	return true, nil
}

// armable are the webhooks that arming is about: the others never have Fail.
var armable = []string{validateWebhook, mutateWebhook, versionsWebhook}

// unarmed reports whether a webhook, as it stands, is one of them and has not Fail.
func isUnarmed(h webhook) bool { return slices.Contains(armable, h.Name) && !isArmed(h) }

// armed reports whether a webhook, as it stands, is one of them and has Fail.
func isArmed(h webhook) bool {
	return slices.Contains(armable, h.Name) && h.FailurePolicy != nil && *h.FailurePolicy == admissionregistrationv1.Fail
}
