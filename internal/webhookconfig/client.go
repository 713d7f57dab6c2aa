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

// hook is a webhook of either sort: it has all the fields of a validating one.
type webhook = admissionregistrationv1.MutatingWebhook

// standing is a configuration of either sort, as it stands in the cluster or is
// to stand there.
type webhookConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Webhooks          []webhook `json:"webhooks,omitempty"`

	applied func() (*webhookConfig, error) // the part of it that we applied
}

// standingOf reads a configuration, or what is to be applied as one.
func toWebhookConfig(configuration any) (*webhookConfig, error) {
	data, err := json.Marshal(configuration)
	if err != nil {
		return nil, fmt.Errorf("read webhooks: %w", err)
	}
	var out webhookConfig
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, fmt.Errorf("read webhooks: %w", err)
	}
	return &out, nil
}

// operation is one step of a JSON patch (RFC 6902).
type patchOperation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// desk is where the configuration of one sort is read and written.
type configClient struct {
	configType string // mutating or validating
	want       *webhookConfig
	// there is what stands there, as look has found it: nil for nothing.
	live *webhookConfig

	get   func(ctx context.Context) (*webhookConfig, error)
	patch func(ctx context.Context, as types.PatchType, data []byte, options metav1.PatchOptions) (*webhookConfig, error)
}

// Names of the two sorts.
const (
	typeMutating   = "mutating"
	typeValidating = "validating"
)

// desks returns those of both sorts, mutating first: what validating decides on
// then carries the annotation.
func newConfigClients(client kubernetes.Interface, c Configuration) ([]configClient, error) {
	api := client.AdmissionregistrationV1()
	first, err := newConfigClient(typeMutating, api.MutatingWebhookConfigurations(), c.Mutating(), ac.ExtractMutatingWebhookConfiguration)
	if err != nil {
		return nil, err
	}
	second, err := newConfigClient(typeValidating, api.ValidatingWebhookConfigurations(), c.Validating(), ac.ExtractValidatingWebhookConfiguration)
	if err != nil {
		return nil, err
	}
	return []configClient{first, second}, nil
}

// lookAt returns the desks of a configuration, after a look at each.
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

// clientOf is a client of configurations of one sort.
type typedClient[C any] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (*C, error)
	Patch(ctx context.Context, name string, as types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (*C, error)
}

func newConfigClient[C, A any](sort string, api typedClient[C], wanted *A, extract func(*C, string) (*A, error)) (configClient, error) {
	want, err := toWebhookConfig(wanted)
	if err != nil {
		return configClient{}, err
	}
	read := func(c *C, err error) (*webhookConfig, error) {
		if err != nil {
			return nil, err
		}
		there, err := toWebhookConfig(c)
		if err != nil {
			return nil, err
		}
		there.applied = func() (*webhookConfig, error) {
			ours, err := extract(c, fieldManager)
			if err != nil {
				return nil, fmt.Errorf("find what is ours: %w", err)
			}
			return toWebhookConfig(ours)
		}
		return there, nil
	}
	return configClient{
		configType: sort, want: want,
		get: func(ctx context.Context) (*webhookConfig, error) {
			return read(api.Get(ctx, want.Name, metav1.GetOptions{}))
		},
		patch: func(ctx context.Context, as types.PatchType, data []byte, options metav1.PatchOptions) (*webhookConfig, error) {
			options.FieldManager = fieldManager
			return read(api.Patch(ctx, want.Name, as, data, options))
		},
	}, nil
}

// look finds out what stands there.
func (d *configClient) read(ctx context.Context) error {
	there, err := d.get(ctx)
	switch {
	case apierrors.IsNotFound(err):
		d.live = nil
	case err != nil:
		return err
	default:
		d.live = there
	}
	return nil
}

// hooks are the webhooks that stand there.
func (d *configClient) webhooks() []webhook {
	if d.live == nil {
		return nil
	}
	return d.live.Webhooks
}

// change makes changes to what stands there, and looks at what comes of it.
func (d *configClient) patchJSON(ctx context.Context, operations []patchOperation) error {
	data, err := json.Marshal(operations)
	if err != nil {
		return err
	}
	there, err := d.patch(ctx, types.JSONPatchType, data, metav1.PatchOptions{})
	if err != nil {
		return err
	}
	d.live = there
	return nil
}

// apply writes what is wanted over what stands there, takes back what others wrote
// over, and returns what came of it.
func (d *configClient) apply(ctx context.Context) (*webhookConfig, error) {
	wanted := *d.want
	if d.live != nil {
		wanted.ResourceVersion = d.live.ResourceVersion
	}
	data, err := json.Marshal(wanted)
	if err != nil {
		return nil, err
	}
	return d.patch(ctx, types.ApplyPatchType, data, metav1.PatchOptions{Force: new(true)})
}

// about is what Events are about.
func (d *configClient) reference() *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: d.want.APIVersion, Kind: d.want.Kind, Name: d.want.Name}
}

// failed says of which configuration an error is.
func (d *configClient) wrap(err error) error {
	return fmt.Errorf("%s webhook configuration %s: %w", d.configType, d.want.Name, err)
}
