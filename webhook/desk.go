package webhook

import (
	"context"
	"encoding/json"
	"fmt"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// hook is a webhook of either sort: it has all the fields of a validating one.
type hook = admissionregistrationv1.MutatingWebhook

// standing is a configuration as it stands in the cluster.
type standing struct {
	metav1.ObjectMeta
	hooks []hook
}

// desk is where the configuration of one sort is read and written.
type desk struct {
	sort string // mutating or validating
	get  func(ctx context.Context) (*standing, error)
	// patch applies a JSON patch.
	patch func(ctx context.Context, data []byte) (*standing, error)
	// apply writes what is wanted over a resourceVersion, "" for any, and returns
	// what came of it.
	apply func(ctx context.Context, version string) (*standing, error)
	want  []hook
	// about is what Events are about.
	about runtime.Object
}

// Names of the two sorts.
const (
	sortMutating   = "mutating"
	sortValidating = "validating"
)

func mutatingDesk(client kubernetes.Interface, want *mutating) (desk, error) {
	api := client.AdmissionregistrationV1().MutatingWebhookConfigurations()
	hooks, err := hooksOf(want.Webhooks)
	read := func(c *admissionregistrationv1.MutatingWebhookConfiguration, err error) (*standing, error) {
		if err != nil {
			return nil, err
		}
		return &standing{c.ObjectMeta, c.Webhooks}, nil
	}
	return desk{
		sort: sortMutating, want: hooks,
		about: &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: *want.Name}},
		get: func(ctx context.Context) (*standing, error) {
			return read(api.Get(ctx, *want.Name, metav1.GetOptions{}))
		},
		patch: func(ctx context.Context, data []byte) (*standing, error) {
			return read(api.Patch(ctx, *want.Name, types.JSONPatchType, data, metav1.PatchOptions{FieldManager: fieldManager}))
		},
		apply: func(ctx context.Context, version string) (*standing, error) {
			if version != "" {
				want.WithResourceVersion(version)
			}
			return read(api.Apply(ctx, want, applyOptions))
		},
	}, err
}

func validatingDesk(client kubernetes.Interface, want *validating) (desk, error) {
	api := client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	hooks, err := hooksOf(want.Webhooks)
	read := func(c *admissionregistrationv1.ValidatingWebhookConfiguration, err error) (*standing, error) {
		if err != nil {
			return nil, err
		}
		hooks, err := hooksOf(c.Webhooks)
		return &standing{c.ObjectMeta, hooks}, err
	}
	return desk{
		sort: sortValidating, want: hooks,
		about: &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: *want.Name}},
		get: func(ctx context.Context) (*standing, error) {
			return read(api.Get(ctx, *want.Name, metav1.GetOptions{}))
		},
		patch: func(ctx context.Context, data []byte) (*standing, error) {
			return read(api.Patch(ctx, *want.Name, types.JSONPatchType, data, metav1.PatchOptions{FieldManager: fieldManager}))
		},
		apply: func(ctx context.Context, version string) (*standing, error) {
			if version != "" {
				want.WithResourceVersion(version)
			}
			return read(api.Apply(ctx, want, applyOptions))
		},
	}, err
}

// applyOptions take back what others wrote over.
var applyOptions = metav1.ApplyOptions{FieldManager: fieldManager, Force: true}

// desks returns those of both sorts, mutating first: what validating decides on
// then carries the annotation.
func desks(client kubernetes.Interface, m *mutating, v *validating) ([]desk, error) {
	first, err := mutatingDesk(client, m)
	if err != nil {
		return nil, err
	}
	second, err := validatingDesk(client, v)
	if err != nil {
		return nil, err
	}
	return []desk{first, second}, nil
}

// look returns what stands there, nil for nothing.
func (d *desk) look(ctx context.Context) (*standing, error) {
	there, err := d.get(ctx)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // that there is none is an answer
	}
	return there, err
}

// hooksOf reads the webhooks of a configuration, or of what is to be applied.
func hooksOf(webhooks any) ([]hook, error) {
	data, err := json.Marshal(webhooks)
	if err != nil {
		return nil, fmt.Errorf("read webhooks: %w", err)
	}
	var out []hook
	if err := json.Unmarshal(data, &out); err != nil {
		return nil, fmt.Errorf("read webhooks: %w", err)
	}
	return out, nil
}
