package webhook

import (
	"context"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/internal/webhookconfig"
)

// evaluateHere evaluates a write on this replica, and responds. It returns false, and
// does not respond, if the replica stopped leading meanwhile. A write that is too much is
// so on each replica.
func (c *call) evaluateHere(ctx context.Context) bool {
	c.awaitCache(ctx)
	view, err := c.readyView(kindOf(c.request))
	if err != nil {
		c.rejectUnavailable(err)
		return true
	}
	resp := c.admit(ctx, view)
	if c.name != webhookReview {
		resp = c.allowSystemWrites(resp)
	}
	if !c.stillLeads() && !resp.isTooMuch() {
		return false
	}
	if c.name == webhookValidate {
		resp.recordVersion(c.opts.Replica)
	}
	c.report(kindLabel(view, c.request), resp)
	c.respond(resp)
	return true
}

// report reports a decision in metrics, trace, log and Events.
func (c *call) report(kind string, resp response) {
	setSpanDecision(c.span, kind, c.request, resp)
	if c.name != webhookReview || c.request.Name != webhookconfig.ProbeName {
		c.opts.Metrics.observe(c.name, kind, c.request.Operation, resp, c.opts.Now().Sub(c.start))
	}
	c.logDecision(resp)
	if c.name != webhookReview { // of which nothing is left to look at
		c.recordDenial(c.request, resp)
	}
}

// kindLabel returns the kind of a request for the metrics, "other" for kinds that are
// not evaluated: a client can send any kind, and would create any number of series.
func kindLabel(v *snapshot.View, r *admissionv1.AdmissionRequest) string {
	k := kindOf(r)
	if v.Kind(k) == nil && !gateway.Known(k) && !v.Selectable(k) && !slices.Contains(ownKinds, k) {
		return "other"
	}
	return k.String()
}

// ownKinds are evaluated besides policies and the kinds that paths consist of.
var ownKinds = []api.PolicyKind{policykind.KindProfile, policykind.KindDefinition, constraint.Kind, constraint.ClusterKind, kindReview}

// logDecision writes one line for a decision, without the content of the object. A
// write that would be denied is logged at level 0: during a roll-out users read it.
func (c *call) logDecision(resp response) {
	level := 1
	if resp.Allowed && resp.reason != "" {
		level = 0
	}
	l, r := c.opts.Log.V(level), c.request
	if !l.Enabled() {
		return // computing the values takes time
	}
	l.Info("decision", "webhook", c.name, "uid", r.UID, "operation", r.Operation,
		"kind", kindOf(r).String(), "namespace", r.Namespace, "name", r.Name,
		"allowed", resp.Allowed, "reason", resp.reason, "warnings", len(resp.Warnings),
		"patched", len(resp.Patch) > 0, "dryRun", isDryRun(r), "evaluatedOn", resp.viewVersion())
}
