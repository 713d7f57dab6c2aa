package webhookconfig

import (
	"context"
	"encoding/json"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ac "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	"k8s.io/client-go/kubernetes"
)

// webhook is a webhook of either configuration type: a mutating webhook has all the
// fields of a validating one.
type webhook = admissionregistrationv1.MutatingWebhook

// webhookConfig is a configuration of either type, as it exists in the cluster or as it
// is wanted.
type webhookConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Webhooks          []webhook `json:"webhooks,omitempty"`

	applied func() (*webhookConfig, error) // the fields that we own
}

// toWebhookConfig converts a configuration, or its apply configuration.
func toWebhookConfig(configuration any) (*webhookConfig, error) {
	data, err := json.Marshal(configuration)
	if err != nil {
		return nil, fmt.Errorf("convert webhook configuration: %w", err)
	}
	var out webhookConfig
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, fmt.Errorf("convert webhook configuration: %w", err)
	}
	return &out, nil
}

// patchOperation is one operation of a JSON patch (RFC 6902).
type patchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// configClient reads and writes the configuration of one type.
type configClient struct {
	configType string // typeMutating or typeValidating
	want       *webhookConfig
	// live is the existing configuration, as of the last read or patchJSON; nil if
	// there is none.
	live *webhookConfig

	get   func(ctx context.Context) (*webhookConfig, error)
	patch func(ctx context.Context, as types.PatchType, data []byte, options metav1.PatchOptions) (*webhookConfig, error)
}

// The types of configurations.
const (
	typeMutating   = "mutating"
	typeValidating = "validating"
)

// newConfigClients returns the clients of both types, mutating first: the validating
// webhook decides on objects that have the annotation.
func newConfigClients(client kubernetes.Interface, c Configuration) ([]configClient, error) {
	api := client.AdmissionregistrationV1()
	mutating, err := newConfigClient(typeMutating, api.MutatingWebhookConfigurations(), c.Mutating(), ac.ExtractMutatingWebhookConfiguration)
	if err != nil {
		return nil, err
	}
	validating, err := newConfigClient(typeValidating, api.ValidatingWebhookConfigurations(), c.Validating(), ac.ExtractValidatingWebhookConfiguration)
	if err != nil {
		return nil, err
	}
	return []configClient{mutating, validating}, nil
}

// readConfigs returns the clients of both types, with the existing configurations.
func readConfigs(ctx context.Context, client kubernetes.Interface, c Configuration) ([]configClient, error) {
	both, err := newConfigClients(client, c)
	if err != nil {
		return nil, err
	}
	for i := range both {
		if err := both[i].read(ctx); err != nil {
			return nil, both[i].wrap(err)
		}
	}
	return both, nil
}

// typedClient is a client-go client of configurations of one type.
type typedClient[C any] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (*C, error)
	Patch(ctx context.Context, name string, as types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (*C, error)
}

func newConfigClient[C, A any](configType string, api typedClient[C], wanted *A, extract func(*C, string) (*A, error)) (configClient, error) {
	want, err := toWebhookConfig(wanted)
	if err != nil {
		return configClient{}, err
	}
	convert := func(c *C, err error) (*webhookConfig, error) {
		if err != nil {
			return nil, err
		}
		live, err := toWebhookConfig(c)
		if err != nil {
			return nil, err
		}
		live.applied = func() (*webhookConfig, error) {
			applied, err := extract(c, fieldManager)
			if err != nil {
				return nil, fmt.Errorf("extract fields of field manager %s: %w", fieldManager, err)
			}
			return toWebhookConfig(applied)
		}
		return live, nil
	}
	return configClient{
		configType: configType, want: want,
		get: func(ctx context.Context) (*webhookConfig, error) {
			return convert(api.Get(ctx, want.Name, metav1.GetOptions{}))
		},
		patch: func(ctx context.Context, as types.PatchType, data []byte, options metav1.PatchOptions) (*webhookConfig, error) {
			options.FieldManager = fieldManager
			return convert(api.Patch(ctx, want.Name, as, data, options))
		},
	}, nil
}

// read reads the existing configuration.
func (c *configClient) read(ctx context.Context) error {
	live, err := c.get(ctx)
	switch {
	case apierrors.IsNotFound(err):
		c.live = nil
	case err != nil:
		return err
	default:
		c.live = live
	}
	return nil
}

// webhooks returns the webhooks of the existing configuration.
func (c *configClient) webhooks() []webhook {
	if c.live == nil {
		return nil
	}
	return c.live.Webhooks
}

// patchJSON patches the existing configuration, and keeps the result as live.
func (c *configClient) patchJSON(ctx context.Context, operations []patchOperation) error {
	data, err := json.Marshal(operations)
	if err != nil {
		return err
	}
	live, err := c.patch(ctx, types.JSONPatchType, data, metav1.PatchOptions{})
	if err != nil {
		return err
	}
	c.live = live
	return nil
}

// apply applies the wanted configuration, takes over fields of other managers, and
// returns the result. It fails with a conflict if the configuration has changed since it
// was read.
func (c *configClient) apply(ctx context.Context) (*webhookConfig, error) {
	wanted := *c.want
	if c.live != nil {
		wanted.ResourceVersion = c.live.ResourceVersion
	}
	data, err := json.Marshal(wanted)
	if err != nil {
		return nil, err
	}
	return c.patch(ctx, types.ApplyPatchType, data, metav1.PatchOptions{Force: new(true)})
}

// reference returns the reference to the configuration for Events.
func (c *configClient) reference() *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: c.want.APIVersion, Kind: c.want.Kind, Name: c.want.Name}
}

// wrap adds the configuration to an error.
func (c *configClient) wrap(err error) error {
	return fmt.Errorf("%s webhook configuration %s: %w", c.configType, c.want.Name, err)
}
