//go:build e2e

package e2e

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/cases"
	"overrule.dev/overrule/test/env"
)

// played are the cases that go the whole way. The others differ in what the
// webhook's own test has; some need objects of another age, or some that a
// CRD's schema refuses.
var played = []string{
	"constraint-complied-with-at-last",
	"constraint-evaded-by-a-value-it-cannot-read",
	"constraint-is-kept",
	"constraint-is-violated",
	"constraint-on-a-list",
	"constraint-violated-before",
	"defaults-merge",
	"delete-a-gateway-policy",
	"delete-a-route",
	"gateway-loses-a-listener",
	"invalid-cel-does-not-compile",
	"overridden-own-rule",
	"rule-is-inserted",
	"section-is-a-listener",
	"target-gateway-is-missing",
	"unset-by-prefix-and-by-name",
	"unset-of-an-override",
	"unset-that-was-there-before",
}

// The API server, the webhook and kubectl together give the verdicts of the one
// table that every door is held to.
func TestKubectlGetsTheVerdictsOfTheCases(t *testing.T) {
	fresh(t)
	var all []cases.Case
	for _, c := range cases.Load(t) {
		if slices.Contains(played, c.File) {
			all = append(all, c)
		}
	}
	require.Len(t, all, len(played))
	for _, c := range all {
		for i := range c.Against {
			got := plane.KubectlWith(own(t, c.File, &c.Against[i]), "apply", "--server-side", "-f", "-")
			require.Zero(t, got.Code, "%s: %s", c.File, got.Stderr)
		}
	}
	start(t)
	for _, c := range all {
		t.Run(c.File, func(t *testing.T) {
			for i := range c.Changes {
				compare(t, c.File, &c.Changes[i])
			}
		})
	}
}

// own is an object as JSON, in namespaces of its case's own.
func own(t *testing.T, file string, o *cases.Object) string {
	t.Helper()
	data, err := json.Marshal(o)
	require.NoError(t, err)
	return strings.NewReplacer(`"infra"`, `"`+file+`-infra"`, `"app"`, `"`+file+`-app"`).Replace(string(data))
}

// compare makes a change with kubectl, and compares what it says.
func compare(t *testing.T, file string, c *cases.Change) {
	t.Helper()
	verb := map[string]string{"CREATE": "create", "UPDATE": "replace", "DELETE": "delete"}[c.Operation]
	got := plane.KubectlWith(own(t, file, &c.Object), verb, "-f", "-")
	if c.Verdict.Allowed {
		succeed(t, got)
	} else {
		codes := make([]string, len(c.Verdict.Reasons))
		for i, f := range c.Verdict.Reasons {
			codes[i] = string(f.Code) + ": "
		}
		denied(t, got, codes...)
	}
	told(t, got, c.Verdict)
}

// told looks for what a verdict says in what is on the terminal.
func told(t *testing.T, got env.Result, want cases.Want) {
	t.Helper()
	for _, f := range want.Reasons {
		for _, part := range f.Says {
			if !strings.ContainsAny(part, " /") { // names of objects are others here
				assert.Contains(t, got.Stderr, part)
			}
		}
	}
	warned := strings.Count(got.Stderr, "Warning: ")
	assert.Equal(t, min(len(want.Warnings), 11), warned, got.Stderr)
}
