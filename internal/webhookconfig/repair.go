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

// put writes the configuration of a desk, and tells whose edit it undoes.
func (r *Reconciler) applyOne(ctx context.Context, d configClient, foreign bool) error {
	if foreign {
		if err := keepCABundles(d); err != nil {
			return err
		}
	}
	undone := r.externalEdits(d, foreign)
	if left := r.revertDelay(d, undone); left > 0 {
		r.recheckAfter = min(r.recheckAfter, left)
		r.disarmedByOthers = r.disarmedByOthers || slices.ContainsFunc(d.webhooks(), isUnarmed)
		return nil
	}
	if err := removeAdded(ctx, &d); err != nil {
		return err
	}
	now, err := d.apply(ctx)
	if by := lastEditor(d.live); apierrors.IsConflict(err) && by != "" {
		return fmt.Errorf("%s writes it, too: %w", by, err)
	}
	if err != nil {
		return err
	}
	if d.live != nil && now.UID != d.live.UID {
		undone = []string{deleted} // after it was looked at: the apply made it anew
	}
	if r.applied == nil {
		r.applied = make(map[string][]webhook)
	}
	r.applied[d.configType] = d.want.Webhooks
	if len(undone) > 0 {
		r.recordRevert(d, undone)
		r.reportRepair(d, strings.Join(undone, "; "), lastEditor(d.live))
	}
	return nil
}

// standing is how long an edit is left as it is, since it was undone before and
// is made again each time. What there is to write of our own does not wait.
func (r *Reconciler) revertDelay(d configClient, undone []string) time.Duration {
	if len(undone) == 0 || !equality.Semantic.DeepEqual(r.applied[d.configType], d.want.Webhooks) {
		return 0
	}
	return r.reverts[d.configType].remaining(undone, time.Now())
}

func (r *Reconciler) recordRevert(d configClient, undone []string) {
	if r.reverts == nil {
		r.reverts = map[string]revertBackoff{typeMutating: {}, typeValidating: {}}
	}
	r.reverts[d.configType].record(undone, time.Now())
}

// deleted is said of a configuration that somebody deleted.
const deleted = "it was deleted"

// undone says what others did to a configuration. A leader that has not written
// it yet cannot tell an edit from what an older version of itself wrote, but for
// fields that others own by now.
func (r *Reconciler) externalEdits(d configClient, foreign bool) []string {
	before, known := r.applied[d.configType]
	switch {
	case d.live == nil && known:
		return []string{deleted}
	case d.live == nil, !known && lastEditor(d.live) == "":
		return nil
	case !known:
		before = d.want.Webhooks
	}
	return differences(before, d.live.Webhooks, !foreign)
}

// repaired tells what was undone, for someone made it on purpose or does not
// know of it.
func (r *Reconciler) reportRepair(d configClient, what, by string) {
	if by == "" {
		by = "someone whom its fields do not name (the audit log of the API server does)"
	}
	r.Metrics.repaired(d.configType)
	r.Log.Info("undid what others did to a webhook configuration", "configuration", d.configType, "name", r.Configuration.Name, "what", what, "by", by)
	if r.Events != nil {
		action := "Repair"
		if what == deleted {
			action = "Recreate" // else it is counted on an Event of an edit, whose note stays
		}
		note := fmt.Sprintf("undone by overrule: %s, by %s; to switch it off see docs/install.md, Break-glass", what, by)
		r.Events.Eventf(d.reference(), nil, corev1.EventTypeWarning, "WebhooksRepaired", action, "%s", guard.EventNote(note))
	}
}

// injector is the field manager of cert-manager's cainjector, whose caBundle is
// no edit.
const cainjector = "cainjector"

// author names who last wrote webhooks of a configuration beside us, "" for
// nobody who left a trace.
func lastEditor(there *webhookConfig) string {
	if there == nil {
		return ""
	}
	var last metav1.ManagedFieldsEntry
	for _, m := range there.ManagedFields {
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

// strip takes away what others added to our webhooks and an apply leaves there: a
// url beside which ours would be refused, conditions, by which all may pass, and
// rules of one that is to have none.
func removeAdded(ctx context.Context, d *configClient) error {
	if d.live == nil {
		return nil
	}
	ops := []patchOperation{{"test", "/metadata/resourceVersion", d.live.ResourceVersion}}
	for i, h := range d.live.Webhooks {
		at := slices.IndexFunc(d.want.Webhooks, func(w webhook) bool { return w.Name == h.Name })
		if at < 0 {
			continue
		}
		want := d.want.Webhooks[at]
		if h.ClientConfig.URL != nil {
			client := want.ClientConfig
			if len(client.CABundle) == 0 {
				client.CABundle = h.ClientConfig.CABundle
			}
			ops = append(ops, patchOperation{"replace", fmt.Sprintf("/webhooks/%d/clientConfig", i), client})
		}
		if hasAdded(want.MatchConditions, h.MatchConditions) {
			ops = append(ops, patchOperation{"replace", fmt.Sprintf("/webhooks/%d/matchConditions", i), want.MatchConditions})
		}
		if len(want.Rules) == 0 && len(h.Rules) > 0 {
			ops = append(ops, patchOperation{"replace", fmt.Sprintf("/webhooks/%d/rules", i), []admissionregistrationv1.RuleWithOperations{}})
		}
	}
	if len(ops) == 1 {
		return nil
	}
	return d.patchJSON(ctx, ops)
}

// added reports whether there is a condition beside those that are wanted.
func hasAdded(want, there []admissionregistrationv1.MatchCondition) bool {
	return slices.ContainsFunc(there, func(c admissionregistrationv1.MatchCondition) bool {
		return !slices.ContainsFunc(want, func(w admissionregistrationv1.MatchCondition) bool { return w.Name == c.Name })
	})
}
