package commands

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cache"
	"overrule.dev/overrule/internal/snapshot"
)

// deleteAuthArgs are the arguments that check the deletion of the gateway's
// AuthPolicy, which has an override.
func deleteAuthArgs(more ...string) []string {
	return append([]string{"check", "--delete", "-f", "-", "-o", "json"}, more...)
}

const gwAuth = "apiVersion: kuadrant.io/v1\nkind: AuthPolicy\nmetadata: {namespace: infra, name: gw-auth}\n"

func TestRightsWithManifests(t *testing.T) {
	for name, c := range map[string]struct {
		more []string
		code int
		want string
	}{
		"default":             {nil, exitNegative, "DELETE AuthPolicy gw-auth OverrideRemoved"},
		"--as is ignored":     {[]string{"--as", "alice", "--as-group", "system:masters"}, exitNegative, "DELETE AuthPolicy gw-auth OverrideRemoved"},
		"--may-override":      {[]string{"--may-override"}, exitOK, "DELETE AuthPolicy gw-auth (OverrideRemoved)"},
		"--enforcement=warn":  {[]string{"--enforcement=warn"}, exitOK, "DELETE AuthPolicy gw-auth OverrideRemoved"},
		"--enforcement=audit": {[]string{"--enforcement=audit"}, exitOK, "DELETE AuthPolicy gw-auth OverrideRemoved"},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, gwAuth, append(against("cluster", "gateway-policies"), deleteAuthArgs(c.more...)...)...)
			require.Equal(t, c.code, got.code, got.stderr)
			assert.Equal(t, []string{c.want}, verdicts(decode[api.VerdictList](t, got.stdout).Items))
		})
	}
}

// The message has the kubectl auth can-i command, with the plural name from the
// definition of the kind.
func TestDenialHasCanICommand(t *testing.T) {
	policy := func(extra string) string {
		return `
---
apiVersion: example.com/v1
kind: Sheep
metadata: {namespace: infra, name: dolly}
spec: {targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}` + extra + "}\n"
	}
	stored := write(t, "stored.yaml", `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: flock.example.com, labels: {gateway.networking.k8s.io/policy: inherited}}
spec: {group: example.com, scope: Namespaced, names: {kind: Sheep, plural: flock}}
`+policy(", overrides: {wool: long}"))
	all := check(t, policy(""), append(against("cluster"), "--against", stored)...)
	assert.Equal(t, []string{"UPDATE Sheep dolly OverrideRemoved"}, verdicts(all))
	assert.Contains(t, all[0].Reasons[0].Message, "override flock.example.com/dolly -n infra")
}

// runAsUser runs a command on a cluster with the demo, as the user of a fake API
// server.
func runAsUser(t *testing.T, s *reviewer, stdin string, args ...string) result {
	t.Helper()
	a := &app{reader: reader{connection: connection{list: func(_ context.Context, config *rest.Config) (*snapshot.View, []cache.Problem, error) {
		assert.Equal(t, s.url, config.Host)
		return clusterView(t, nil), nil, nil
	}}}}
	return a.exec(t, stdin, append(args, "--kubeconfig", s.kubeconfig(t))...)
}

func TestRightsOnCluster(t *testing.T) {
	for name, c := range map[string]struct {
		may  bool
		code int
		want string
	}{
		"denied":  {false, exitNegative, "DELETE AuthPolicy gw-auth OverrideRemoved"},
		"allowed": {true, exitOK, "DELETE AuthPolicy gw-auth (OverrideRemoved)"},
	} {
		t.Run(name, func(t *testing.T) {
			s := startReviewer(t, c.may)
			got := runAsUser(t, s, gwAuth, deleteAuthArgs()...)
			require.Equal(t, c.code, got.code, got.stderr)
			assert.Equal(t, []string{c.want}, verdicts(decode[api.VerdictList](t, got.stdout).Items))
			assert.Equal(t, []authorizationv1.ResourceAttributes{
				{Verb: "override", Group: "kuadrant.io", Resource: "authpolicies", Namespace: "infra", Name: "gw-auth"},
			}, s.accessReviews(), "exactly one access review")
		})
	}
	t.Run("diff sends no access review", func(t *testing.T) {
		s := startReviewer(t, false)
		s.broken = true
		got := runAsUser(t, s, gwAuth, "diff", "--delete", "-f", "-")
		require.Equal(t, exitOK, got.code, got.stderr)
		assert.Contains(t, got.stdout, "DELETE AuthPolicy infra/gw-auth: 2 effective policies change\n")
		assert.Empty(t, got.stderr)
	})
	t.Run("no access review unless an override is lost", func(t *testing.T) {
		s := startReviewer(t, false)
		got := runAsUser(t, s, "", "check", "-f", demo+"route-limits.yaml")
		require.Equal(t, exitOK, got.code, got.stderr)
		assert.Empty(t, s.accessReviews())
	})
}

func TestRightsUnavailable(t *testing.T) {
	s := startReviewer(t, true)
	s.broken = true
	got := runAsUser(t, s, gwAuth, deleteAuthArgs()...)
	assert.Equal(t, exitError, got.code)
	assert.Empty(t, got.stdout)
	assert.Contains(t, got.stderr, "error: evaluate AuthPolicy infra/gw-auth: ")
	assert.Contains(t, got.stderr, "warning: cannot determine the current user, evaluating constraints without request.userInfo: ")
}

func TestInvalidChangeFlags(t *testing.T) {
	change := []string{"-f", demo + "route-auth.yaml"}
	assertErrors(t, change, map[string]errorCase{
		"--may-override on a cluster": {
			[]string{"check", "--may-override"}, exitError,
			"invalid --may-override: requires --against or --from; on a cluster, your own rights or those of --as apply",
		},
		"--may-override of diff on a cluster": {[]string{"diff", "--may-override"}, exitError, "invalid --may-override: requires --against"},
		"a negative limit":                    {append(against("cluster"), "check", "--blast-radius-limit=-1"), exitError, "--blast-radius-limit"},
		"an unknown enforcement":              {append(against("cluster"), "check", "--enforcement=none"), exitError, `invalid value "none" for --enforcement`},
	})
}
