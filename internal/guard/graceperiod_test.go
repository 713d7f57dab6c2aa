package guard_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/snapshot"
)

// graceWorld is a world that time passes in.
type graceWorld struct {
	*testing.T
	*snapshot.View

	unmetSince time.Time
}

func (w *graceWorld) guard() *guard.Guard {
	return &guard.Guard{Engine: effective.NewEngine(), ReadsAll: true, UnmetSince: func(api.Ref, []api.PathElement) time.Time { return w.unmetSince }}
}

// graceDoc is an object that was created at a time, or is not created yet.
func graceDoc(kind, name string, created time.Time, rest string) string {
	meta := fmt.Sprintf("{namespace: app, name: %s}", name)
	if !created.IsZero() {
		meta = fmt.Sprintf("{namespace: app, name: %s, creationTimestamp: %q}", name, created.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("kind: %s\nmetadata: %s\n%s", kind, meta, rest)
}

func graceRoute(created time.Time, labels string) string {
	return strings.Replace(graceDoc("HTTPRoute", "r", created, "spec: {rules: [{}], parentRefs: [{name: g}]}"), "name: r", "name: r, labels: {x: v"+labels+"}", 1)
}

const gracePolicySpec = "spec: {targetRefs: [{kind: HTTPRoute, name: r}], "

// reported evaluates a write, nil for the deletion of a policy, and returns the beginning of what is said of the constraint.
func (w *graceWorld) reported(doc string) string {
	w.Helper()
	c := guard.Change{Operation: guard.Delete}
	if name, deleted := strings.CutPrefix(doc, "delete "); deleted {
		c.Before = w.Get(read(w.T, w.View, graceDoc("Paint", name, time.Time{}, gracePolicySpec+"a: 1}")).Ref())
		require.NotNil(w, c.Before)
	} else {
		c = change(w.View, read(w.T, w.View, doc))
	}
	d, err := w.guard().Evaluate(w.Context(), w.View, c, nil)
	require.NoError(w, err)
	var out []string
	for _, f := range slices.Concat(d.Denials, d.Warnings) {
		if f.Policy.Name == "c" {
			_, why, _ := strings.Cut(f.What, "): ")
			out = append(out, fmt.Sprintf("%s %s", f.Action, why))
		}
	}
	return strings.Join(out, "; ")
}

func (w *graceWorld) put(doc string) { w.View = w.With(snapshot.Put(read(w.T, w.View, doc))) }

// SEMANTICS section 8: for as long as a grace period after an object was created, or a policy was
// deleted, a violation is a warning; then the next write is denied.
func TestGracePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		w := &graceWorld{T: t, View: world(t, docs(
			graceDoc("Gateway", "g", began.Add(-time.Hour), "spec: {gatewayClassName: istio, listeners: [{name: http, port: 80, protocol: HTTP}]}"),
			graceDoc("Gateway", "h", began.Add(-3*time.Hour), "spec: {gatewayClassName: istio, listeners: [{name: http, port: 80, protocol: HTTP}]}"),
			graceDoc("HTTPRoute", "old", began.Add(-3*time.Hour), "spec: {rules: [{}], parentRefs: [{name: h}]}"),
		))}
		constraints := fmt.Sprintf(`{"kind":"ClusterPolicyConstraint","metadata":{"name":"c","creationTimestamp":%q},"spec":{"policyKind":{"group":"example.com","kind":"Paint"},"gracePeriod":"5m","rules":[{"path":"a","required":true}]}}`,
			began.Add(-2*time.Hour).UTC().Format(time.RFC3339))
		c, err := snapshot.Decode(constraint.ClusterKind, nil, []byte(constraints), 0)
		require.NoError(t, err)
		w.View = w.With(snapshot.Put(c))
		const existing, over = "Warn existing violation, not made worse by this write", "Deny the grace period of 5m is over"

		assert.Equal(t, "Warn allowed for another 5m, the constraint's grace period", w.reported(graceRoute(time.Time{}, "1")), "a new object")
		w.put(graceRoute(began, "1"))
		time.Sleep(4 * time.Minute)
		assert.Equal(t, "Warn allowed for another 60s, the constraint's grace period", w.reported(graceRoute(began, "2")))
		assert.Equal(t, "Warn allowed for another 60s, the constraint's grace period", w.reported(graceDoc("Paint", "empty", time.Time{}, gracePolicySpec+"b: 1}")), "any write that leads to it")
		time.Sleep(2 * time.Minute)
		assert.Equal(t, over, w.reported(graceRoute(began, "2")))
		assert.Equal(t, existing, w.reported(graceDoc("Gateway", "g", began.Add(-time.Hour),
			"spec: {gatewayClassName: istio, listeners: [{name: http, port: 80, protocol: HTTP, hostname: '*.com'}]}")), "not of what is above it")
		assert.Equal(t, existing, w.reported(strings.Replace(graceDoc("HTTPRoute", "old", began.Add(-3*time.Hour), "spec: {rules: [{}], parentRefs: [{name: h}]}"),
			"name: old", "name: old, labels: {x: v2}", 1)), "what is older than the constraint")

		w.put(graceDoc("Paint", "p", began, gracePolicySpec+"a: 1}"))
		assert.Empty(t, w.reported(graceRoute(began, "2")))
		_, dropped, _ := strings.Cut(w.reported(graceDoc("Paint", "p", began, gracePolicySpec+"b: 1}")), " ")
		assert.Empty(t, dropped, "an edit has no grace period: it is denied without a reason of its own")
		assert.Equal(t, "Warn allowed for another 5m, the constraint's grace period", w.reported("delete p"))
		w.View = w.With(snapshot.Delete(read(t, w.View, graceDoc("Paint", "p", began, gracePolicySpec+"a: 1}")).Ref()))
		w.unmetSince = time.Now() // as the audit observes it
		time.Sleep(4 * time.Minute)
		assert.Equal(t, "Warn allowed for another 60s, the constraint's grace period", w.reported(graceRoute(began, "2")))
		assert.Equal(t, []time.Duration{time.Minute}, w.allowed(), "an audit says until when it is allowed")
		time.Sleep(2 * time.Minute)
		assert.Equal(t, over, w.reported(graceRoute(began, "2")))
		assert.Equal(t, over, w.reported(strings.Replace(graceDoc("HTTPRoute", "old", began.Add(-3*time.Hour), "spec: {rules: [{}], parentRefs: [{name: h}]}"),
			"name: old", "name: old, labels: {x: v2}", 1)), "what is older than the constraint, too, once the policy is deleted")
		assert.Equal(t, []time.Duration{0}, w.allowed())
	})
}

// allowed returns for how long each violation on the route is allowed, as an audit has it.
func (w *graceWorld) allowed() []time.Duration {
	w.Helper()
	found, err := w.guard().Violations(w.Context(), w.View, effective.ScopeOf(w.Get(read(w.T, w.View, graceRoute(time.Time{}, "1")).Ref())))
	require.NoError(w, err)
	var out []time.Duration
	for _, v := range found {
		left := time.Duration(0)
		if v.Until != nil {
			left = time.Until(v.Until.Time)
		}
		out = append(out, left)
	}
	return out
}
