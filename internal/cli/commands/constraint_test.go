package commands

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cache"
	"overrule.dev/overrule/internal/cli/manifest"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/tables"
)

// clusterConstraint is a constraint on every path that can have an AuthPolicy.
func clusterConstraint(name, expression string) string {
	return `
---
apiVersion: overrule.dev/v1alpha1
kind: ClusterPolicyConstraint
metadata: {name: ` + name + `}
spec:
  policyKind: {group: kuadrant.io, kind: AuthPolicy}
  validations: [{expression: '` + expression + `', message: ` + name + ` is not so}]
`
}

const (
	someAuth  = `has(effective.rules) && has(effective.rules.authentication)`
	byAlice   = `!has(effective.rules) || request.operation == "" || has(request.userInfo) && request.userInfo.username == "alice"`
	lowerAuth = `
---
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {namespace: app, name: lower}
spec: {targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: toystore}, rules: {authentication: {a: 1}}}
`
)

// constrainedDemo is the demo cluster without policies, with constraints.
func constrainedDemo(t *testing.T, constraints string) []string {
	t.Helper()
	return append(against("cluster"), "--against", write(t, "constraints.yaml", constraints))
}

func TestCheckConstraints(t *testing.T) {
	for name, c := range tables.Read[map[string]struct {
		Constraints, Text string
		Args              []string
		Want              []string
	}](t, "testdata/tables/check-constraints.yaml") {
		t.Run(name, func(t *testing.T) {
			got := check(t, c.Text, append(constrainedDemo(t, c.Constraints), c.Args...)...)
			assert.Equal(t, c.Want, verdicts(got))
		})
	}
}

// constrainedCluster is a cluster without policies that has Kuadrant's kinds,
// and constraints.
func constrainedCluster(t *testing.T, constraints string) *app {
	t.Helper()
	return &app{reader: reader{connection: connection{list: func(context.Context, *rest.Config) (*snapshot.View, []cache.Problem, error) {
		set, err := manifest.Read([]string{demo + "cluster.yaml", write(t, "c.yaml", constraints)}, nil)
		require.NoError(t, err)
		kinds := manifest.NewKinds(nil)
		v, err := set.View(kinds, "default")
		require.NoError(t, err)
		return v.WithKinds(slices.DeleteFunc(slices.Clone(v.Kinds()), func(k *policykind.Kind) bool { return k.Group != "kuadrant.io" })), nil, nil
	}}}}
}

// On a cluster, request.userInfo is the user of the kubeconfig.
func TestConstraintsReadCurrentUser(t *testing.T) {
	for name, broken := range map[string]bool{"user is known": false, "user is unknown": true} {
		t.Run(name, func(t *testing.T) {
			s := startReviewer(t, false)
			s.broken = broken
			got := constrainedCluster(t, clusterConstraint("alice", byAlice)).
				exec(t, lowerAuth, "check", "-f", "-", "-o", "json", "--kubeconfig", s.kubeconfig(t))
			want := []string{"CREATE AuthPolicy lower"}
			if broken {
				want[0] += " RequirementUnmet"
			}
			assert.Equal(t, want, verdicts(decode[api.VerdictList](t, got.stdout).Items), got.stderr)
		})
	}
}

func TestViolationsOfAConstraint(t *testing.T) {
	local := strings.NewReplacer("ClusterPolicyConstraint", "PolicyConstraint", "{name: authenticated}", "{name: local, namespace: app}").
		Replace(clusterConstraint("authenticated", someAuth))
	files := append(demoFiles("cluster"), "-f", write(t, "c.yaml",
		clusterConstraint("authenticated", someAuth)+clusterConstraint("kept", "true")+local))
	of := func(ref string) []string {
		return []string{"Deny RequirementUnmet AuthPolicy toystore#toys  " + ref, "Deny RequirementUnmet AuthPolicy toystore#admin  " + ref}
	}
	everywhere := of("ClusterPolicyConstraint authenticated")
	here := of("PolicyConstraint app/local")
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"all":                            {nil, []string{everywhere[0], here[0], everywhere[1], here[1]}},
		"of the cluster":                 {[]string{"clusterpolicyconstraint/authenticated"}, everywhere},
		"of the cluster, wherever":       {[]string{"-n", "elsewhere", "clusterpolicyconstraint/authenticated"}, everywhere},
		"of the cluster, in any case":    {[]string{"ClusterPolicyConstraints.overrule.dev", "authenticated"}, everywhere},
		"of the cluster, on other paths": {[]string{"--kind", "RateLimitPolicy", "clusterpolicyconstraint/authenticated"}, nil},
		"of one that is kept":            {[]string{"clusterpolicyconstraint/kept"}, nil},
		"of a namespace":                 {[]string{"-n", "app", "policyconstraint/local"}, here},
		"of any namespace":               {[]string{"-A", "policyconstraint/local"}, here},
		"of a route":                     {[]string{"-n", "app", "httproute/toystore"}, []string{everywhere[0], here[0], everywhere[1], here[1]}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, listViolations(t, append(files, c.args...)...))
		})
	}
	got := run(t, "", append(files, "violations", "policyconstraint/local")...)
	assert.Equal(t, exitNegative, got.code)
	assert.Equal(t, "error: PolicyConstraint default/local not found, but exists in namespace app: use -n to select a namespace or -A for all\n", got.stderr)
}

func TestInactiveConstraintsAreReported(t *testing.T) {
	text := clusterConstraint("broken", "1 +")
	got := run(t, "", append(demoFiles("cluster"), "-f", write(t, "c.yaml", text), "violations")...)
	assert.Equal(t, exitOK, got.code)
	assert.Contains(t, got.stderr, "warning: ClusterPolicyConstraint broken ")
	goldenStderr(t, got)
	unknown := strings.Replace(clusterConstraint("later", "true"), "kind: AuthPolicy", "kind: Unheard", 1)
	got = run(t, "", append(demoFiles("cluster"), "-f", write(t, "c.yaml", unknown), "violations")...)
	assert.Equal(t, exitOK, got.code)
	assert.Contains(t, got.stderr, "Unheard.kuadrant.io")
	goldenStderr(t, got)
	known := strings.Replace(clusterConstraint("later", "true"), "group: kuadrant.io, kind: AuthPolicy", "group: gateway.envoyproxy.io, kind: SecurityPolicy", 1)
	got = constrainedCluster(t, known).exec(t, "", "violations", "--kubeconfig", startReviewer(t, false).kubeconfig(t))
	assert.Equal(t, exitOK, got.code)
	assert.Contains(t, got.stderr, "SecurityPolicy.gateway.envoyproxy.io")
	goldenStderr(t, got)
}

// A route that has lost its authentication to a policy that replaces it violates a constraint that
// requires it, and its path says what was lost.
func TestViolationsOfLostAuthentication(t *testing.T) {
	const required = `
apiVersion: overrule.dev/v1alpha1
kind: ClusterPolicyConstraint
metadata: {name: jwt}
spec:
  policyKind: {group: gateway.envoyproxy.io, kind: SecurityPolicy}
  targets: [{kind: Gateway, namespace: infra, name: edge}]
  rules: [{path: jwt, required: true}]
`
	files := []string{"-f", "testdata/losses.yaml", "-f", write(t, "c.yaml", required)}
	assert.Contains(t, listViolations(t, append(files, "--kind", "SecurityPolicy")...), "Deny RequirementUnmet SecurityPolicy toys#rule-1 jwt ClusterPolicyConstraint jwt")
	got := run(t, "", append([]string{"effective", "-n", "app", "-o", "tree", "httproute/toys"}, files...)...)
	assert.Contains(t, got.stdout, "no authentication  infra/edge's jwt is replaced by app/empty")
}
