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

// withoutAuth deletes the gateway's AuthPolicy, which has an override.
func deleteAuthArgs(more ...string) []string {
	return append([]string{"check", "--delete", "-f", "-", "-o", "json"}, more...)
}

const gwAuth = "apiVersion: kuadrant.io/v1\nkind: AuthPolicy\nmetadata: {namespace: infra, name: gw-auth}\n"

func TestWhoMayRemoveOverridesOfManifests(t *testing.T) {
	for name, c := range map[string]struct {
		more []string
		code int
		want string
	}{
		"nobody":                       {nil, exitNegative, "DELETE AuthPolicy gw-auth OverrideRemoved"},
		"nobody, whoever they are":     {[]string{"--as", "alice", "--as-group", "system:masters"}, exitNegative, "DELETE AuthPolicy gw-auth OverrideRemoved"},
		"anyone with --may-override":   {[]string{"--may-override"}, exitOK, "DELETE AuthPolicy gw-auth (OverrideRemoved)"},
		"anyone with --enforcement":    {[]string{"--enforcement=warn"}, exitOK, "DELETE AuthPolicy gw-auth OverrideRemoved"},
		"anyone in the first roll-out": {[]string{"--enforcement=audit"}, exitOK, "DELETE AuthPolicy gw-auth OverrideRemoved"},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, gwAuth, append(against("cluster", "gateway-policies"), deleteAuthArgs(c.more...)...)...)
			require.Equal(t, c.code, got.code, got.stderr)
			assert.Equal(t, []string{c.want}, verdicts(decode[api.VerdictList](t, got.stdout).Items))
		})
	}
}

// The message has the command that shows who may, with the plural name of the
// kind's definition.
func TestTheDenialSaysHowToSeeWhoMay(t *testing.T) {
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
	assert.Contains(t, all[0].Reasons[0].Message, "kubectl auth can-i override flock.example.com/dolly -n infra")
}

// asUser runs a command on a cluster that holds the demo, as a user of an API
// server.
func runAsUser(t *testing.T, s *reviewer, stdin string, args ...string) result {
	t.Helper()
	a := &app{list: func(_ context.Context, config *rest.Config) (*snapshot.View, []cache.Problem, error) {
		assert.Equal(t, s.url, config.Host)
		return clusterView(t, nil), nil, nil
	}}
	return a.exec(t, stdin, append(args, "--kubeconfig", s.kubeconfig(t))...)
}

func TestWhoMayRemoveOverridesOfACluster(t *testing.T) {
	for name, c := range map[string]struct {
		may  bool
		code int
		want string
	}{
		"a user without the right": {false, exitNegative, "DELETE AuthPolicy gw-auth OverrideRemoved"},
		"a user with it":           {true, exitOK, "DELETE AuthPolicy gw-auth (OverrideRemoved)"},
	} {
		t.Run(name, func(t *testing.T) {
			s := startReviewer(t, c.may)
			got := runAsUser(t, s, gwAuth, deleteAuthArgs()...)
			require.Equal(t, c.code, got.code, got.stderr)
			assert.Equal(t, []string{c.want}, verdicts(decode[api.VerdictList](t, got.stdout).Items))
			assert.Equal(t, []authorizationv1.ResourceAttributes{
				{Verb: "override", Group: "kuadrant.io", Resource: "authpolicies", Namespace: "infra", Name: "gw-auth"},
			}, s.accessReviews(), "asked once, and about nothing else")
		})
	}
	t.Run("nobody is asked by diff, which denies nothing", func(t *testing.T) {
		s := startReviewer(t, false)
		s.broken = true
		got := runAsUser(t, s, gwAuth, "diff", "--delete", "-f", "-")
		require.Equal(t, exitOK, got.code, got.stderr)
		assert.Contains(t, got.stdout, "DELETE AuthPolicy infra/gw-auth: 2 effective policies change\n")
		assert.Empty(t, got.stderr)
	})
	t.Run("nobody is asked where no override is lost", func(t *testing.T) {
		s := startReviewer(t, false)
		got := runAsUser(t, s, "", "check", "-f", demo+"route-limits.yaml")
		require.Equal(t, exitOK, got.code, got.stderr)
		assert.Empty(t, s.accessReviews())
	})
}

func TestRightsThatCannotBeFoundOut(t *testing.T) {
	s := startReviewer(t, true)
	s.broken = true
	got := runAsUser(t, s, gwAuth, deleteAuthArgs()...)
	assert.Equal(t, exitError, got.code)
	assert.Empty(t, got.stdout)
	assert.Contains(t, got.stderr, "error: judge AuthPolicy infra/gw-auth: whether the user may remove overrides cannot be found out: "+
		"ask whether the user may override AuthPolicy infra/gw-auth: ")
	assert.Contains(t, got.stderr, "warning: who you are cannot be found out, and constraints that ask for it are judged as for nobody: ")
}

func TestFlagsOfChangesThatDoNotFit(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"--may-override on a cluster": {
			[]string{"check", "-f", demo + "route-auth.yaml", "--may-override"},
			"invalid --may-override: requires --against: on a cluster your own rights count, or those of the user of --as",
		},
		"--may-override of diff on a cluster": {
			[]string{"diff", "-f", demo + "route-auth.yaml", "--may-override"}, "invalid --may-override: requires --against",
		},
		"a limit below zero": {
			append(against("cluster"), "check", "-f", demo+"route-auth.yaml", "--blast-radius-limit=-1"),
			"invalid --blast-radius-limit: must not be negative",
		},
		"an enforcement that there is not": {
			append(against("cluster"), "check", "-f", demo+"route-auth.yaml", "--enforcement=none"),
			`invalid value "none" for --enforcement: must be one of deny, warn, audit`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, "", c.args...)
			assert.Equal(t, exitError, got.code)
			assert.Contains(t, got.stderr, c.want)
			assert.Empty(t, got.stdout)
		})
	}
}
