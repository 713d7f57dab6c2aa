package webhookconfig

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"overrule.dev/overrule/internal/guard"
)

// applyOne writes one configuration, and reports the edits of others that it reverts.
func (r *Reconciler) applyOne(ctx context.Context, config configClient, external bool) error {
	if external {
		if err := keepCABundles(config); err != nil {
			return err
		}
	}
	edits := r.externalEdits(config, external)
	if delay := r.revertDelay(config, edits); delay > 0 {
		r.term.recheckAfter = min(r.term.recheckAfter, delay)
		r.term.disarmedByOthers = r.term.disarmedByOthers || slices.ContainsFunc(config.webhooks(), isUnarmed)
		return nil
	}
	if err := removeAdded(ctx, &config); err != nil {
		return err
	}
	now, err := config.apply(ctx)
	if by := lastEditor(config.live); apierrors.IsConflict(err) && by != "" {
		return fmt.Errorf("%s also writes it: %w", by, err)
	}
	if err != nil {
		return err
	}
	if config.live != nil && now.UID != config.live.UID {
		edits = []string{deleted} // after it was read: the apply created it again
	}
	if r.term.applied == nil {
		r.term.applied = make(map[string][]webhook)
	}
	r.term.applied[config.configType] = config.want.Webhooks
	if len(edits) > 0 {
		r.recordRevert(config, edits)
		r.reportRepair(config, strings.Join(edits, "; "), lastEditor(config.live))
	}
	return nil
}

// revertDelay returns how long edits stay in place that were reverted before and are made
// again each time. A change of our own is written without a delay.
func (r *Reconciler) revertDelay(config configClient, edits []string) time.Duration {
	if len(edits) == 0 || !equality.Semantic.DeepEqual(r.term.applied[config.configType], config.want.Webhooks) {
		return 0
	}
	return r.term.reverts[config.configType].remaining(edits, time.Now())
}

func (r *Reconciler) recordRevert(config configClient, edits []string) {
	if r.term.reverts == nil {
		r.term.reverts = map[string]revertBackoff{typeMutating: {}, typeValidating: {}}
	}
	r.term.reverts[config.configType].record(edits, time.Now())
}

// deleted describes the deletion of a configuration.
const deleted = "deleted"

// externalEdits describes the edits of others to a configuration. A leader that has not
// written it yet cannot distinguish an edit from what an older version of itself wrote,
// except for fields that another manager owns now.
func (r *Reconciler) externalEdits(config configClient, external bool) []string {
	before, known := r.term.applied[config.configType]
	switch {
	case config.live == nil && known:
		return []string{deleted}
	case config.live == nil, !known && lastEditor(config.live) == "":
		return nil
	case !known:
		before = config.want.Webhooks
	}
	return differences(before, config.live.Webhooks, !external)
}

// reportRepair reports edits that were reverted: they were made on purpose, or by mistake.
func (r *Reconciler) reportRepair(config configClient, edits, by string) {
	if by == "" {
		by = "an unknown client (see the audit log of the API server)"
	}
	r.Metrics.repaired(config.configType)
	r.Log.Info("reverted a change to a webhook configuration", "configuration", config.configType, "name", r.Configuration.Name, "what", edits, "by", by)
	if r.Events != nil {
		action := "Repair"
		if edits == deleted {
			action = "Recreate" // otherwise it is counted in an Event of an edit, with the note of that
		}
		note := fmt.Sprintf("reverted by overrule: %s; changed by %s; to disable overrule see docs/install.md, Break-glass", edits, by)
		r.Events.Eventf(config.reference(), nil, corev1.EventTypeWarning, "WebhooksRepaired", action, "%s", guard.EventNote(note))
	}
}

// cainjector is in the name of the field manager of cert-manager's cainjector, whose
// caBundle is not an edit.
const cainjector = "cainjector"

// lastEditor names the field manager that last wrote webhooks of a configuration besides
// us, "" for none.
func lastEditor(live *webhookConfig) string {
	if live == nil {
		return ""
	}
	var last metav1.ManagedFieldsEntry
	for _, m := range live.ManagedFields {
		if m.Manager == fieldManager || strings.Contains(m.Manager, cainjector) || m.FieldsV1 == nil || !strings.Contains(m.FieldsV1.GetRawString(), `"f:webhooks"`) {
			continue
		}
		if last.Manager == "" || last.Time != nil && m.Time != nil && last.Time.Before(m.Time) {
			last = m
		}
	}
	if last.Manager == "" {
		return ""
	}
	return fmt.Sprintf("field manager %s (%s)", last.Manager, last.Operation)
}

// removeAdded removes what others added to our webhooks and server-side apply would keep:
// a url, beside which the API server rejects our service; conditions, which may exclude
// all writes; and rules of a webhook that must not have any.
func removeAdded(ctx context.Context, config *configClient) error {
	if config.live == nil {
		return nil
	}
	ops := []patchOperation{{"test", "/metadata/resourceVersion", config.live.ResourceVersion}}
	for i, h := range config.live.Webhooks {
		at := slices.IndexFunc(config.want.Webhooks, func(w webhook) bool { return w.Name == h.Name })
		if at >= 0 {
			ops = append(ops, removeAddedTo(i, h, config.want.Webhooks[at])...)
		}
	}
	if len(ops) == 1 {
		return nil
	}
	return config.patchJSON(ctx, ops)
}

// removeAddedTo returns the operations that remove what others added to the i-th webhook.
func removeAddedTo(i int, live, want webhook) []patchOperation {
	var ops []patchOperation
	replace := func(field string, value any) {
		ops = append(ops, patchOperation{"replace", fmt.Sprintf("/webhooks/%d/%s", i, field), value})
	}
	if live.ClientConfig.URL != nil {
		client := want.ClientConfig
		if len(client.CABundle) == 0 {
			client.CABundle = live.ClientConfig.CABundle
		}
		replace("clientConfig", client)
	}
	if hasAdded(want.MatchConditions, live.MatchConditions) {
		replace("matchConditions", want.MatchConditions)
	}
	if len(want.Rules) == 0 && len(live.Rules) > 0 {
		replace("rules", []admissionregistrationv1.RuleWithOperations{})
	}
	return ops
}

// hasAdded reports whether there is a condition besides the wanted ones.
func hasAdded(want, live []admissionregistrationv1.MatchCondition) bool {
	return slices.ContainsFunc(live, func(c admissionregistrationv1.MatchCondition) bool {
		return !slices.ContainsFunc(want, func(w admissionregistrationv1.MatchCondition) bool { return w.Name == c.Name })
	})
}
