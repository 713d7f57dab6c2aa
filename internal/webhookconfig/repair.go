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
func (r *Registrar) put(ctx context.Context, d desk, foreign bool) error {
	if foreign {
		if err := carry(d); err != nil {
			return err
		}
	}
	undone := r.undone(d, foreign)
	if left := r.standing(d, undone); left > 0 {
		r.pause = min(r.pause, left)
		r.unarmed = r.unarmed || slices.ContainsFunc(d.hooks(), unarmed)
		return nil
	}
	if err := strip(ctx, &d); err != nil {
		return err
	}
	now, err := d.apply(ctx)
	if by := author(d.there); apierrors.IsConflict(err) && by != "" {
		return fmt.Errorf("%s writes it, too: %w", by, err)
	}
	if err != nil {
		return err
	}
	if d.there != nil && now.UID != d.there.UID {
		undone = []string{deleted} // after it was looked at: the apply made it anew
	}
	if r.applied == nil {
		r.applied = make(map[string][]hook)
	}
	r.applied[d.sort] = d.want.Hooks
	if len(undone) > 0 {
		r.book(d, undone)
		r.repaired(d, strings.Join(undone, "; "), author(d.there))
	}
	return nil
}

// standing is how long an edit is left as it is, since it was undone before and
// is made again each time. What there is to write of our own does not wait.
func (r *Registrar) standing(d desk, undone []string) time.Duration {
	if len(undone) == 0 || !equality.Semantic.DeepEqual(r.applied[d.sort], d.want.Hooks) {
		return 0
	}
	return r.paces[d.sort].left(undone, time.Now())
}

func (r *Registrar) book(d desk, undone []string) {
	if r.paces == nil {
		r.paces = map[string]pace{sortMutating: {}, sortValidating: {}}
	}
	r.paces[d.sort].note(undone, time.Now())
}

// deleted is said of a configuration that somebody deleted.
const deleted = "it was deleted"

// undone says what others did to a configuration. A leader that has not written
// it yet cannot tell an edit from what an older version of itself wrote, but for
// fields that others own by now.
func (r *Registrar) undone(d desk, foreign bool) []string {
	before, known := r.applied[d.sort]
	switch {
	case d.there == nil && known:
		return []string{deleted}
	case d.there == nil, !known && author(d.there) == "":
		return nil
	case !known:
		before = d.want.Hooks
	}
	return differences(before, d.there.Hooks, !foreign)
}

// repaired tells what was undone, for someone made it on purpose or does not
// know of it.
func (r *Registrar) repaired(d desk, what, by string) {
	if by == "" {
		by = "someone whom its fields do not name (the audit log of the API server does)"
	}
	r.Metrics.repaired(d.sort)
	r.Log.Info("undid what others did to a webhook configuration", "configuration", d.sort, "name", r.Configuration.Name, "what", what, "by", by)
	if r.Events != nil {
		action := "Repair"
		if what == deleted {
			action = "Recreate" // else it is counted on an Event of an edit, whose note stays
		}
		note := fmt.Sprintf("undone by overrule: %s, by %s; to switch it off see docs/install.md, Break-glass", what, by)
		r.Events.Eventf(d.about(), nil, corev1.EventTypeWarning, "WebhooksRepaired", action, "%s", guard.EventNote(note))
	}
}

// injector is the field manager of cert-manager's cainjector, whose caBundle is
// no edit.
const injector = "cainjector"

// author names who last wrote webhooks of a configuration beside us, "" for
// nobody who left a trace.
func author(there *standing) string {
	if there == nil {
		return ""
	}
	var last metav1.ManagedFieldsEntry
	for _, m := range there.ManagedFields {
		if m.Manager == fieldManager || strings.Contains(m.Manager, injector) || m.FieldsV1 == nil || !strings.Contains(m.FieldsV1.GetRawString(), `"f:webhooks"`) {
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
func strip(ctx context.Context, d *desk) error {
	if d.there == nil {
		return nil
	}
	ops := []operation{{"test", "/metadata/resourceVersion", d.there.ResourceVersion}}
	for i, h := range d.there.Hooks {
		at := slices.IndexFunc(d.want.Hooks, func(w hook) bool { return w.Name == h.Name })
		if at < 0 {
			continue
		}
		want := d.want.Hooks[at]
		if h.ClientConfig.URL != nil {
			client := want.ClientConfig
			if len(client.CABundle) == 0 {
				client.CABundle = h.ClientConfig.CABundle
			}
			ops = append(ops, operation{"replace", fmt.Sprintf("/webhooks/%d/clientConfig", i), client})
		}
		if added(want.MatchConditions, h.MatchConditions) {
			ops = append(ops, operation{"replace", fmt.Sprintf("/webhooks/%d/matchConditions", i), want.MatchConditions})
		}
		if len(want.Rules) == 0 && len(h.Rules) > 0 {
			ops = append(ops, operation{"replace", fmt.Sprintf("/webhooks/%d/rules", i), []admissionregistrationv1.RuleWithOperations{}})
		}
	}
	if len(ops) == 1 {
		return nil
	}
	return d.change(ctx, ops)
}

// added reports whether there is a condition beside those that are wanted.
func added(want, there []admissionregistrationv1.MatchCondition) bool {
	return slices.ContainsFunc(there, func(c admissionregistrationv1.MatchCondition) bool {
		return !slices.ContainsFunc(want, func(w admissionregistrationv1.MatchCondition) bool { return w.Name == c.Name })
	})
}
