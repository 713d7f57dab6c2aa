package webhook

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ac "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
)

type (
	mutating   = ac.MutatingWebhookConfigurationApplyConfiguration
	validating = ac.ValidatingWebhookConfigurationApplyConfiguration
)

// hookClients are the clientConfigs of the webhooks of a configuration, by name.
type hookClients map[string]*ac.WebhookClientConfigApplyConfiguration

// writeAround writes the configurations and leaves each caBundle as it is.
//
// One that another wrote is not in what we apply, and so stays. One that we
// wrote, before it became another's to write, has to be applied again until
// they have: left out, it would be taken away, and every call fail meanwhile.
// The resourceVersion keeps us from putting it back over theirs.
func (r *Registrar) writeAround(ctx context.Context, c Configuration) error {
	c.CABundle = nil
	m, v := c.Mutating(), c.Validating()
	if err := r.carryMutating(ctx, m); err != nil {
		return fmt.Errorf("mutating webhook configuration %s: %w", c.Name, err)
	}
	if err := r.carryValidating(ctx, v); err != nil {
		return fmt.Errorf("validating webhook configuration %s: %w", c.Name, err)
	}
	return r.apply(ctx, m, v)
}

func (r *Registrar) carryMutating(ctx context.Context, wanted *mutating) error {
	there, err := r.Client.AdmissionregistrationV1().MutatingWebhookConfigurations().Get(ctx, *wanted.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	ours, err := ac.ExtractMutatingWebhookConfiguration(there, fieldManager)
	if err != nil {
		return fmt.Errorf("find what is ours: %w", err)
	}
	wanted.WithResourceVersion(there.ResourceVersion)
	carry(mutatingClients(ours), mutatingClients(wanted))
	return nil
}

func (r *Registrar) carryValidating(ctx context.Context, wanted *validating) error {
	there, err := r.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, *wanted.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return err
	}
	ours, err := ac.ExtractValidatingWebhookConfiguration(there, fieldManager)
	if err != nil {
		return fmt.Errorf("find what is ours: %w", err)
	}
	wanted.WithResourceVersion(there.ResourceVersion)
	carry(validatingClients(ours), validatingClients(wanted))
	return nil
}

func mutatingClients(c *mutating) hookClients {
	out := hookClients{}
	for _, hook := range c.Webhooks {
		out[*hook.Name] = hook.ClientConfig
	}
	return out
}

func validatingClients(c *validating) hookClients {
	out := hookClients{}
	for _, hook := range c.Webhooks {
		out[*hook.Name] = hook.ClientConfig
	}
	return out
}

// carry takes over the bundles that are ours.
func carry(ours, wanted hookClients) {
	for name, client := range wanted {
		if before := ours[name]; before != nil {
			client.CABundle = before.CABundle
		}
	}
}

// untrusted tells that a caBundle is empty which is another's to write: then the
// API server can verify nobody, and every call fails.
func (r *Registrar) untrusted(ctx context.Context) error {
	if r.Foreign == nil || !r.Foreign() {
		return nil
	}
	both, err := desks(r.Client, r.Configuration.Mutating(), r.Configuration.Validating())
	if err != nil {
		return err
	}
	for _, d := range both {
		there, err := d.look(ctx)
		if err != nil {
			return fmt.Errorf("%s webhook configuration %s: %w", d.sort, r.Configuration.Name, err)
		}
		if there == nil {
			continue
		}
		for _, h := range there.hooks {
			if len(h.ClientConfig.CABundle) == 0 {
				return fmt.Errorf("%s webhook configuration %s: caBundle of %s is empty, so calls of it fail: %s",
					d.sort, r.Configuration.Name, h.Name, r.Untrusted)
			}
		}
	}
	return nil
}
