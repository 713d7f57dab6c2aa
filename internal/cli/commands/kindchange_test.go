package commands

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cache"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// ownProfile is a profile of OwnPolicies with the given sameTarget.
func ownProfile(name, sameTarget string) string {
	return fmt.Sprintf(`
---
apiVersion: overrule.dev/v1alpha1
kind: PolicyProfile
metadata: {name: %s}
spec:
  group: example.com
  kind: OwnPolicy
  class: inherited
  targets: {fields: [targetRef]}
  blocks: {overrides: [overrides]}
  sameTarget: %s
`, name, sameTarget)
}

// createdLastYear is a name with a creation time a year ago.
func createdLastYear(name string) string { return name + `, creationTimestamp: "2025-01-01T00:00:00Z"` }

func ownPolicy(name, target, spec string) string {
	kind := map[string]string{"edge": "Gateway", "toystore": "HTTPRoute"}[target]
	namespace := map[string]string{"edge": "infra", "toystore": "app"}[target]
	return fmt.Sprintf(`
---
apiVersion: example.com/v1
kind: OwnPolicy
metadata: {namespace: %s, name: %s}
spec: {targetRef: {group: gateway.networking.k8s.io, kind: %s, name: %s}, %s}
`, namespace, name, kind, target, spec)
}

func verdicts(all []api.Verdict) []string {
	var out []string
	for _, v := range all {
		text := v.Operation + " " + v.Object.Kind + " " + v.Object.Name
		for _, r := range v.Reasons {
			text += " " + string(r.Code)
		}
		for _, r := range v.Warnings {
			if r.Code != api.ReasonBlastRadius {
				text += " (" + string(r.Code) + ")"
			}
		}
		out = append(out, text)
	}
	return out
}

// A PolicyProfile applies to the objects after it and to existing policies.
func TestProfileAppliesToLaterChanges(t *testing.T) {
	stored := write(t, "stored.yaml", ownPolicy(createdLastYear("first"), "edge", "overrides: {size: 1}"))
	against := append(against("cluster"), "--against", stored)
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"existing policies conflict with new ones": {
			ownProfile("own", "none") + ownPolicy("second", "edge", "size: 2"),
			[]string{"CREATE PolicyProfile own", "CREATE OwnPolicy second Conflicted"},
		},
		"existing policies override new ones": {
			ownProfile("own", "hierarchical") + ownPolicy("lower", "toystore", "size: 2"),
			[]string{"CREATE PolicyProfile own", "CREATE OwnPolicy lower (Overridden)"},
		},
		"objects before it are not evaluated, but take effect": {
			ownPolicy("second", "toystore", "size: 2") + ownProfile("own", "none") + ownPolicy("third", "toystore", "size: 3"),
			[]string{"CREATE PolicyProfile own", "CREATE OwnPolicy third Conflicted"},
		},
		"a second profile of the kind has no effect": {
			ownProfile("own", "none") + ownPolicy("second", "edge", "size: 2") + ownProfile("zz", "hierarchical") + ownPolicy("third", "edge", "size: 3"),
			[]string{"CREATE PolicyProfile own", "CREATE OwnPolicy second Conflicted", "CREATE PolicyProfile zz (Conflicted)", "CREATE OwnPolicy third Conflicted"},
		},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, verdicts(check(t, c.text, against...))) })
	}
}

func TestUpdateAndDeleteProfile(t *testing.T) {
	stored := write(t, "stored.yaml", ownProfile("own", "hierarchical")+
		ownPolicy(createdLastYear("old"), "edge", "overrides: {size: 1}")+ownPolicy("new", "edge", "overrides: {size: 2}"))
	args := append(against("cluster"), "--against", stored)
	assert.Equal(t, []string{"UPDATE PolicyProfile own (OverrideEvaded)", "CREATE OwnPolicy x Conflicted"},
		verdicts(check(t, ownProfile("own", "none")+ownPolicy("x", "edge", "size: 3"), append(args, "--may-override")...)))
	got := run(t, ownProfile("own", "oldestWins"), append(args, "diff", "-f", "-", "-o", "json")...)
	require.Equal(t, exitOK, got.code, got.stderr)
	assert.Empty(t, decode[api.ChangeList](t, got.stdout).Items, "overrides of one target: the oldest takes precedence either way")
	got = run(t, ownProfile("own", "collect"), append(args, "diff", "-f", "-")...)
	require.Equal(t, exitOK, got.code, got.stderr)
	assert.Contains(t, got.stdout, "UPDATE PolicyProfile own: 2 effective policies change (2 lose size)\n")
	got = run(t, ownProfile("own", "hierarchical"), append(args, "diff", "--delete", "-f", "-", "-o", "json")...)
	require.Equal(t, exitOK, got.code, got.stderr)
	items := decode[api.ChangeList](t, got.stdout).Items
	require.Len(t, items, 2, "the objects are no longer policies")
	assert.Nil(t, items[0].Rules[0].After)
	assert.Equal(t, api.Ref{Group: api.Group, Kind: api.KindPolicyProfile, Name: "own"}, items[0].Object)
	got = run(t, ownProfile("absent", "none"), append(args, "check", "--delete", "-f", "-")...)
	assert.Equal(t, exitNegative, got.code)
	assert.Contains(t, got.stderr, "cannot delete PolicyProfile absent: not found")
}

// authOf is a profile of AuthPolicies.
func authOf(name, sameTarget string) string {
	return `
apiVersion: overrule.dev/v1alpha1
kind: PolicyProfile
metadata: {name: ` + name + `}
spec:
  group: kuadrant.io
  kind: AuthPolicy
  class: inherited
  targets: {fields: [targetRef]}
  blocks: {overrides: [overrides], defaults: [defaults]}
  rules: [rules.*.*]
  strategy: {field: strategy, allowed: [merge]}
  sameTarget: ` + sameTarget + "\n"
}

const lateAuth = `
---
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {namespace: app, name: late}
spec: {targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: toystore}, rules: {authentication: {sso: 1}}}
`

// runOnStoredPolicies runs a command on a cluster as a user who is allowed to remove
// overrides. listed are the errors of the first lists of its AuthPolicies, the first also of
// reading one.
func runOnStoredPolicies(t *testing.T, given []*policykind.Kind, listed []error, stdin string, args ...string) result {
	t.Helper()
	lists := 0
	s := startReviewer(t, true)
	a := &app{reader: reader{connection: connection{
		list: func(context.Context, *rest.Config) (*snapshot.View, []cache.Problem, error) {
			return clusterView(t, given), nil, nil
		},
		stored: storedFuncs{func(ref api.Ref) (map[string]any, error) {
			if ref.Kind == "AuthPolicy" && len(listed) > 0 && listed[0] != nil {
				return nil, listed[0]
			}
			return nil, errNotFound
		}, func(kind api.PolicyKind) ([]map[string]any, error) {
			if kind.Kind != "AuthPolicy" {
				return nil, nil
			}
			var o map[string]any
			require.NoError(t, yaml.Unmarshal([]byte(lateAuth), &o))
			o["metadata"] = map[string]any{"namespace": "app", "name": "early", "creationTimestamp": "2025-01-01T00:00:00Z"}
			lists++
			if lists <= len(listed) && listed[lists-1] != nil {
				return nil, listed[lists-1]
			}
			return []map[string]any{o}, nil
		}},
	}}}
	return a.exec(t, stdin, append(args, "--kubeconfig", s.kubeconfig(t))...)
}

var errGone = errors.New("gone")

func TestPoliciesOnClusterAreDecodedAgain(t *testing.T) {
	got := runOnStoredPolicies(t, nil, nil, authOf("own", "none")+lateAuth, "check", "-f", "-", "-o", "json")
	require.Equal(t, exitNegative, got.code, got.stderr)
	assert.Equal(t, []string{"CREATE PolicyProfile own (OverrideEvaded)", "CREATE AuthPolicy late Conflicted"}, verdicts(decode[api.VerdictList](t, got.stdout).Items))
	got = runOnStoredPolicies(t, nil, []error{errGone}, authOf("own", "none"), "check", "-f", "-")
	assert.Equal(t, exitError, got.code)
	assert.Contains(t, got.stderr, "AuthPolicy.kuadrant.io: gone")

	got = runOnStoredPolicies(t, nil, []error{nil, errGone}, authOf("own", "none")+lateAuth, "check", "-f", "-", "-o", "markdown")
	require.Equal(t, exitNegative, got.code, "the verdict stays: %s", got.stderr)
	assert.Contains(t, got.stdout, "**Overrule: 1 denied")
	assert.Contains(t, got.stderr, "warning: the report shows each denied object as if it were allowed alone: ")
	assert.Contains(t, got.stderr, "gone")
	got = runOnStoredPolicies(t, nil, []error{nil, errGone}, authOf("own", "none")+lateAuth, "check", "-f", "-", "-o", "markdown", "--redact-values")
	assert.Contains(t, got.stderr, "it failed; details are omitted")
	assert.NotContains(t, got.stderr, "gone")
}
