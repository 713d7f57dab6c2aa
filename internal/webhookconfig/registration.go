package webhookconfig

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// webhook is a webhook of either configuration type: a mutating webhook has all the
// fields of a validating one.
type webhook = admissionregistrationv1.MutatingWebhook

// WebhookConfig is a configuration of either type.
type WebhookConfig struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Webhooks          []webhook `json:"webhooks,omitempty"`
}

// webhook returns the webhook of a name, nil for none. A nil configuration has none.
func (c *WebhookConfig) webhook(name string) *webhook {
	if c != nil {
		if i := slices.IndexFunc(c.Webhooks, func(h webhook) bool { return h.Name == name }); i >= 0 {
			return &c.Webhooks[i]
		}
	}
	return nil
}

// registration is the configuration of one type: as it is wanted, and as it exists.
type registration struct {
	configType string // typeMutating or typeValidating
	want       *WebhookConfig
	live       *WebhookConfig // nil if there is none

	patch func(ctx context.Context, as types.PatchType, data any, options metav1.PatchOptions) (*WebhookConfig, error)
}

// The types of configurations.
const (
	typeMutating   = "mutating"
	typeValidating = "validating"
)

// readBoth reads the configurations of both types, mutating first: the validating webhook
// decides on objects that have the annotation.
func readBoth(ctx context.Context, client kubernetes.Interface, c Configuration) ([]*registration, error) {
	api := client.AdmissionregistrationV1()
	mutating, err := readOne(ctx, typeMutating, api.MutatingWebhookConfigurations(), c.Mutating())
	if err != nil {
		return nil, err
	}
	validating, err := readOne(ctx, typeValidating, api.ValidatingWebhookConfigurations(), c.Validating())
	return []*registration{mutating, validating}, err
}

// typedClient is a client-go client of configurations of one type.
type typedClient[C any] interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (*C, error)
	Patch(ctx context.Context, name string, as types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (*C, error)
}

func readOne[C any](ctx context.Context, configType string, api typedClient[C], want *WebhookConfig) (*registration, error) {
	r := &registration{configType: configType, want: want}
	r.patch = func(ctx context.Context, as types.PatchType, data any, options metav1.PatchOptions) (*WebhookConfig, error) {
		body, err := json.Marshal(data)
		if err != nil {
			return nil, err
		}
		options.FieldManager = fieldManager
		return convert(api.Patch(ctx, want.Name, as, body, options))
	}
	live, err := convert(api.Get(ctx, want.Name, metav1.GetOptions{}))
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, r.wrap(err)
	}
	r.live = live
	return r, nil
}

// convert converts a configuration of one type.
func convert[C any](typed *C, err error) (*WebhookConfig, error) {
	if err != nil {
		return nil, err
	}
	data, err := json.Marshal(typed)
	if err != nil {
		return nil, err
	}
	out := &WebhookConfig{}
	return out, json.Unmarshal(data, out)
}

// restoreRight says what to do about a missing right. Break-glass starts with removing it.
const restoreRight = "apply deploy/base/rbac-webhooks.yaml (with Helm, upgrade the release) to restore this right; " +
	"if it was removed on purpose, see docs/install.md, Break-glass"

// wrap adds the configuration to an error.
func (r *registration) wrap(err error) error {
	if apierrors.IsForbidden(err) {
		err = fmt.Errorf("%w: %s", err, restoreRight)
	}
	return fmt.Errorf("%s webhook configuration %s: %w", r.configType, r.want.Name, err)
}

// reference returns the reference to the configuration for Events.
func (r *registration) reference() *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: r.want.APIVersion, Kind: r.want.Kind, Name: r.want.Name}
}

// apply applies the wanted configuration, takes over fields of other managers, and
// returns the result. It fails with a conflict if the configuration has changed since it
// was read.
func (r *registration) apply(ctx context.Context) (*WebhookConfig, error) {
	if err := r.removeAdded(ctx); err != nil {
		return nil, err
	}
	if r.live != nil {
		r.want.ResourceVersion = r.live.ResourceVersion
	}
	return r.patch(ctx, types.ApplyPatchType, r.want, metav1.PatchOptions{Force: new(true)})
}

// withhold replaces failurePolicy Fail by Ignore, except where it is Fail already for the
// same Service: the API server has reached that before.
func (r *registration) withhold() {
	for i := range r.want.Webhooks {
		w := &r.want.Webhooks[i]
		h := ptr.Deref(r.live.webhook(w.Name), webhook{})
		was, is := ptr.Deref(h.ClientConfig.Service, admissionregistrationv1.ServiceReference{}), w.ClientConfig.Service
		fails := ptr.Deref(h.FailurePolicy, "") == admissionregistrationv1.Fail && was.Namespace == is.Namespace && was.Name == is.Name
		if w.Name != reviewWebhook && !fails {
			w.FailurePolicy = new(admissionregistrationv1.Ignore)
		}
	}
}

// leaveOthers leaves out the namespaceSelectors that others hold, such as a cloud that
// exempts its own namespaces and would write them again each time. If another client
// writes the caBundle, those that it holds are left out, too; the other entries get that
// of the first one, which is ours until the other client has written its own: left out,
// it would be removed, and every call would fail meanwhile.
func (r *registration) leaveOthers(externalCABundle bool) {
	bundle := ptr.Deref(r.live.webhook(r.want.Webhooks[0].Name), webhook{}).ClientConfig.CABundle
	for i := range r.want.Webhooks {
		w := &r.want.Webhooks[i]
		if r.othersHold(w.Name, "namespaceSelector") {
			w.NamespaceSelector = nil
		}
		if externalCABundle && !r.othersHold(w.Name, "clientConfig", "caBundle") {
			w.ClientConfig.CABundle = bundle
		}
	}
}

// othersHold reports whether another field manager holds a field of a webhook.
func (r *registration) othersHold(name string, field ...any) bool {
	if r.live == nil {
		return false
	}
	path := fieldpath.MakePathOrDie(append([]any{"webhooks", fieldpath.KeyByFields("name", name)}, field...)...)
	return slices.ContainsFunc(r.live.ManagedFields, func(m metav1.ManagedFieldsEntry) bool {
		var held fieldpath.Set
		return m.Manager != fieldManager && m.FieldsV1 != nil && held.FromJSON(strings.NewReader(m.FieldsV1.GetRawString())) == nil && held.Has(path)
	})
}

// removeAdded removes what others added to our webhooks and server-side apply would keep,
// although it keeps writes from being evaluated: a url, beside which the API server
// rejects our Service, and conditions.
func (r *registration) removeAdded(ctx context.Context) error {
	if r.live == nil {
		return nil
	}
	webhooks, added := slices.Clone(r.live.Webhooks), false
	for i := range webhooks {
		h := &webhooks[i]
		if w := r.want.webhook(h.Name); w != nil && (h.ClientConfig.URL != nil || hasAdded(w.MatchConditions, h.MatchConditions)) {
			h.ClientConfig.URL, h.ClientConfig.Service, h.MatchConditions, added = nil, w.ClientConfig.Service, w.MatchConditions, true
		}
	}
	if !added {
		return nil
	}
	metadata := map[string]string{"resourceVersion": r.live.ResourceVersion} // a precondition
	now, err := r.patch(ctx, types.MergePatchType, map[string]any{"metadata": metadata, "webhooks": webhooks}, metav1.PatchOptions{})
	if err == nil {
		r.live = now
	}
	return err
}

// hasAdded reports whether there is a condition besides the wanted ones.
func hasAdded(want, live []admissionregistrationv1.MatchCondition) bool {
	return slices.ContainsFunc(live, func(c admissionregistrationv1.MatchCondition) bool {
		return !slices.ContainsFunc(want, func(w admissionregistrationv1.MatchCondition) bool { return w.Name == c.Name })
	})
}
