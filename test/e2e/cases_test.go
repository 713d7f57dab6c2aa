//go:build e2e

package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"

	"overrule.dev/overrule/test/cases"
	"overrule.dev/overrule/test/env"
)

// skippedCases differ from others only in what the webhook's own test checks, or
// need objects of another age, a server with another limit, objects that a CRD's
// schema rejects or that affect other cases, or name a namespace in an
// expression.
var skippedCases = []string{
	"attached-by-hostname",
	"attached-by-kind",
	"attached-by-namespace-labels",
	"attached-by-namespace-name",
	"attached-by-port",
	"attached-by-section-name",
	"attached-from-the-same-namespace",
	"blast-radius-acknowledged-for-another-change",
	"blast-radius-acknowledged",
	"blast-radius-at-the-limit",
	"blast-radius-in-ones-own-namespace",
	"blast-radius-over-the-limit",
	"changes-one-after-another",
	"condition-of-another-kind",
	"condition-that-a-route-brings",
	"conflicted-before-stays-editable",
	"conflicted-not-on-another-section",
	"conflicted-on-the-same-target",
	"conflicted-resolved-by-deletion",
	"constraint-evaded-inside-a-list",
	"constraint-is-created",
	"constraint-names-a-key-that-was-left-out",
	"cyclic-targets-of-a-guessed-kind",
	"defaults-atomic",
	"delete-a-route-policy",
	"effective-invalid-before",
	"effective-invalid",
	"empty-policy-replaces-a-required-rule",
	"empty-policy-that-merges-changes-nothing",
	"invalid-before-stays-editable",
	"invalid-cel-is-no-bool",
	"invalid-fixed",
	"invalid-patch-is-not-allowed",
	"invalid-rules-of-the-wrong-type",
	"invalid-strategy",
	"invalid-target-is-itself",
	"invalid-target-kind",
	"invalid-without-a-target",
	"older-is-higher",
	"overridden-by-a-gateway-policy",
	"overridden-by-moving-the-route",
	"opaque-effective-invalid-by-a-lower-policy",
	"opaque-requirement-of-a-backend-of-another-namespace",
	"opaque-requirement-of-a-policy-that-selects-the-route",
	"overridden-with-an-equal-value",
	"override-evaded-by-another-backend",
	"override-evaded-by-deleting-a-grant",
	"override-evaded-by-narrowing-a-grant",
	"override-evaded-by-the-weights-of-backends",
	"override-of-a-route-binds-another-namespace",
	"override-stays-beside-another-backend",
	"override-with-an-owner-that-it-had",
	"requirement-on-origins",
	"profile-that-is-stricter",
	"profile-whose-route-overrides-bind-less",
	"profile-with-milder-actions",
	"profile-with-milder-actions-and-no-override",
	"profile-with-milder-actions-by-right",
	"profile-without-gates",
	"section-is-an-unnamed-rule",
	"section-is-the-whole-gateway",
	"section-rule-n-of-a-named-rule",
	"target-appears-later",
	"target-gateway-class",
	"target-in-another-namespace",
	"target-section-is-missing",
	"unset-of-a-default",
}

// Both users may write every object; one may also override.
const (
	writer    = "cases-writer"
	overrider = "cases-overrider"
)

// The API server, the webhook and kubectl together give the verdicts of
// test/cases.
func TestKubectlGetsTheVerdictsOfTheCases(t *testing.T) {
	c := shared(t)
	normal := rbacv1.PolicyRule{
		APIGroups: []string{"*"}, Resources: []string{"*"},
		Verbs: []string{"get", "list", "create", "update", "patch", "delete"},
	}
	override := rbacv1.PolicyRule{APIGroups: []string{"kuadrant.io"}, Resources: []string{"*"}, Verbs: []string{"override"}}
	c.MustAddUser(t, writer, nil, normal)
	c.MustAddUser(t, overrider, nil, normal, override)
	all := slices.DeleteFunc(cases.Load(t), func(one cases.Case) bool { return slices.Contains(skippedCases, one.File) })
	var manifest strings.Builder
	for _, one := range all {
		for i := range one.Against {
			manifest.WriteString("---\n" + own(t, one.File, &one.Against[i]) + "\n")
		}
	}
	succeed(t, c.KubectlWith(manifest.String(), "apply", "--server-side", "-f", "-"))
	c.start(t)
	for _, one := range all {
		t.Run(one.File, func(t *testing.T) {
			t.Parallel()
			who := writer
			if one.MayOverride {
				who = overrider
			}
			for i := range one.Changes {
				c.compare(t, who, one.File, &one.Changes[i])
			}
		})
	}
}

// own returns an object as JSON, in the namespaces of its case.
func own(t *testing.T, file string, o *cases.Object) string {
	t.Helper()
	data, err := json.Marshal(o)
	require.NoError(t, err)
	return strings.NewReplacer(
		`"infra"`, `"`+file+`-infra"`, `"app"`, `"`+file+`-app"`, `"elsewhere"`, `"`+file+`-elsewhere"`,
	).Replace(string(data))
}

// compare makes a change with kubectl, and compares the output.
func (c *cluster) compare(t *testing.T, who, file string, change *cases.Change) {
	t.Helper()
	verb := map[string]string{"CREATE": "create", "UPDATE": "replace", "DELETE": "delete"}[change.Operation]
	got := c.KubectlWith(own(t, file, &change.Object), "--as="+who, verb, "-f", "-")
	if change.Verdict.Allowed {
		succeed(t, got)
	} else {
		require.Equal(t, 1, got.Code, got.Stdout+got.Stderr)
		assert.Contains(t, got.Stderr, `validate.overrule.dev" denied the request: `) // by one of Overrule's webhooks
		for _, f := range change.Verdict.Reasons {
			assert.Contains(t, got.Stderr, string(f.Code)+": ")
		}
	}
	warnings(t, got, change.Verdict)
}

// warnings compares the warnings of a verdict with kubectl's output.
func warnings(t *testing.T, got env.Result, want cases.Want) {
	t.Helper()
	for _, f := range want.Reasons {
		for _, part := range f.Says {
			if !strings.ContainsAny(part, " /") { // names of objects differ here
				assert.Contains(t, got.Stderr, part)
			}
		}
	}
	warned := strings.Count(got.Stderr, "Warning: ")
	assert.Equal(t, min(cases.Shown(want.Warnings), 11), warned, got.Stderr)
}
