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
type hook = admissionregistrationv1.MutatingWebhook

// standing is a configuration of either sort, as it stands in the cluster or is
// to stand there.
type standing struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Hooks             []hook `json:"webhooks,omitempty"`

	ours func() (*standing, error) // the part of it that we applied
}

// standingOf reads a configuration, or what is to be applied as one.
func standingOf(configuration any) (*standing, error) {
	data, err := json.Marshal(configuration)
	if err != nil {
		return nil, fmt.Errorf("read webhooks: %w", err)
	}
	var out standing
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, fmt.Errorf("read webhooks: %w", err)
	}
	return &out, nil
}

// operation is one step of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// desk is where the configuration of one sort is read and written.
type desk struct {
	sort string // mutating or validating
	want *standing
	// there is what stands there, as look has found it: nil for nothing.
	there *standing

	get   func(ctx context.Context) (*standing, error)
	patch func(ctx context.Context, as types.PatchType, data []byte, options metav1.PatchOptions) (*standing, error)
}

// Names of the two sorts.
const (
	sortMutating   = "mutating"
	sortValidating = "validating"
)

// desks returns those of both sorts, mutating first: what validating decides on
// then carries the annotation.
func desks(client kubernetes.Interface, c Configuration) ([]desk, error) {
	api := client.AdmissionregistrationV1()
	first, err := deskOf(sortMutating, api.MutatingWebhookConfigurations(), c.Mutating(), ac.ExtractMutatingWebhookConfiguration)
	if err != nil {
		return nil, err
	}
	second, err := deskOf(sortValidating, api.ValidatingWebhookConfigurations(), c.Validating(), ac.ExtractValidatingWebhookConfiguration)
	if err != nil {
		return nil, err
	}
	return []desk{first, second}, nil
}

// lookAt returns the desks of a configuration, after a look at each.
func lookAt(ctx context.Context, client kubernetes.Interface, c Configuration) ([]desk, error) {
	both, err := desks(client, c)
	if err != nil {
		return nil, err
	}
	for i := range both {
		if err := both[i].look(ctx); err != nil {
			return nil, both[i].failed(err)
		}
	}
	return both, nil
}

// clientOf is a client of configurations of one sort.
type clientOf[C any] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (*C, error)
	Patch(ctx context.Context, name string, as types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (*C, error)
}

func deskOf[C, A any](sort string, api clientOf[C], wanted *A, extract func(*C, string) (*A, error)) (desk, error) {
	want, err := standingOf(wanted)
	if err != nil {
		return desk{}, err
	}
	read := func(c *C, err error) (*standing, error) {
		if err != nil {
			return nil, err
		}
		there, err := standingOf(c)
		if err != nil {
			return nil, err
		}
		there.ours = func() (*standing, error) {
			ours, err := extract(c, fieldManager)
			if err != nil {
				return nil, fmt.Errorf("find what is ours: %w", err)
			}
			return standingOf(ours)
		}
		return there, nil
	}
	return desk{
		sort: sort, want: want,
		get: func(ctx context.Context) (*standing, error) {
			return read(api.Get(ctx, want.Name, metav1.GetOptions{}))
		},
		patch: func(ctx context.Context, as types.PatchType, data []byte, options metav1.PatchOptions) (*standing, error) {
			options.FieldManager = fieldManager
			return read(api.Patch(ctx, want.Name, as, data, options))
		},
	}, nil
}

// look finds out what stands there.
func (d *desk) look(ctx context.Context) error {
	there, err := d.get(ctx)
	switch {
	case apierrors.IsNotFound(err):
		d.there = nil
	case err != nil:
		return err
	default:
		d.there = there
	}
	return nil
}

// hooks are the webhooks that stand there.
func (d *desk) hooks() []hook {
	if d.there == nil {
		return nil
	}
	return d.there.Hooks
}

// change makes changes to what stands there, and looks at what comes of it.
func (d *desk) change(ctx context.Context, operations []operation) error {
	data, err := json.Marshal(operations)
	if err != nil {
		return err
	}
	there, err := d.patch(ctx, types.JSONPatchType, data, metav1.PatchOptions{})
	if err != nil {
		return err
	}
	d.there = there
	return nil
}

// apply writes what is wanted over what stands there, takes back what others wrote
// over, and returns what came of it.
func (d *desk) apply(ctx context.Context) (*standing, error) {
	wanted := *d.want
	if d.there != nil {
		wanted.ResourceVersion = d.there.ResourceVersion
	}
	data, err := json.Marshal(wanted)
	if err != nil {
		return nil, err
	}
	return d.patch(ctx, types.ApplyPatchType, data, metav1.PatchOptions{Force: new(true)})
}

// about is what Events are about.
func (d *desk) about() *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: d.want.APIVersion, Kind: d.want.Kind, Name: d.want.Name}
}

// failed says of which configuration an error is.
func (d *desk) failed(err error) error {
	return fmt.Errorf("%s webhook configuration %s: %w", d.sort, d.want.Name, err)
}
