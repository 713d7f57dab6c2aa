//go:build e2e

package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"overrule.dev/overrule/test/server"
)

const (
	outcome = `.metadata.annotations.overrule\.dev/outcome`
	version = ".metadata.resourceVersion"
)

// TestKubectl runs one server for all kubectl commands, with separate namespaces
// for each of its parts. Those whose output is asserted run as the program.
func TestKubectl(t *testing.T) {
	c := shared(t)
	s := c.start(t)
	for name, test := range map[string]func(*testing.T, testNamespaces, *server.Server){
		"warns":     warnsWriter,
		"unchanged": unchangedApply,
		"apply":     appliesServerSide,
		"diff":      diffs,
		"generate":  generatesNames,
		"annotate":  restoresAnnotations,
		"claim":     annotatesClaimedDeletion,
		"status":    leavesStatusAlone,
		"delete":    deletes,
		"finalize":  finalizes,
		"namespace": deletesNamespaces,
	} {
		t.Run(name, func(t *testing.T) {
			g := c.prepare(t, name)
			if slices.Contains([]string{"warns", "unchanged", "diff"}, name) {
				g.c = c.program()
			}
			succeed(t, g.apply(gatewayAuth+"---"+gatewayLimits))
			test(t, g, s)
		})
	}
}

func warnsWriter(t *testing.T, g testNamespaces, _ *server.Server) {
	got := g.apply(strings.Replace(routeAuth, "toystore-auth", "warned", 1))
	succeed(t, got)
	assert.Equal(t, g.expand("Warning: rules.authentication.sso has no effect on HTTPRoute APP/toystore: AuthPolicy INFRA/gw-auth overrides it on Gateway INFRA/edge; ask the owner of INFRA/gw-auth\n"), got.Stderr)
	assert.Equal(t, `{"asOf":"last write","state":"PartiallyEnforced","paths":{"total":2,"enforced":0,"partiallyEnforced":2,"overridden":0,"inactive":0},`+
		g.expand(`"lost":[{"rule":"rules.authentication.sso","to":"AuthPolicy INFRA/gw-auth","paths":2}]}`), g.get(t, "authpolicy/warned", outcome))
	succeed(t, g.kubectl("delete", "authpolicy/warned"))

	denied(t, g.apply(limits("name: warned", 100)), g.expand(`ConstraintViolated: limits.login: Invalid value: {"rates":[{"limit":100,"window":"10s"}]}: not allowed by `+
		`RateLimitPolicy INFRA/gw-limits on Gateway INFRA/edge (when: spec.limits.login.rates.exists(r, r.limit > 50)): `+
		`it would be replaced by {"rates":[{"limit":50,"window":"10s"}]}; change it or ask the owner of INFRA/gw-limits`))
	assert.Equal(t, 1, g.kubectl("get", "ratelimitpolicy/warned").Code, "a denied object is not stored")
	denied(t, g.apply(strings.Replace(routeAuth, "rules:", "unset: [sso]\n  rules:", 1)), "UnsetOverride: unset rules.authentication.sso has no effect")
}

func unchangedApply(t *testing.T, g testNamespaces, _ *server.Server) {
	policy := strings.Replace(routeAuth, "toystore-auth", "same", 1)
	succeed(t, g.apply(policy))
	before := g.get(t, "authpolicy/same", version)
	got := g.apply(policy)
	succeed(t, got)
	assert.Equal(t, "authpolicy.kuadrant.io/same unchanged\n", got.Stdout)
	assert.Equal(t, before, g.get(t, "authpolicy/same", version))

	before = g.get(t, "httproute/toystore", version)
	got = g.apply(toystore)
	succeed(t, got)
	// kubectl sends the route's lists again, since the schema adds defaults to
	// them.
	assert.Equal(t, before, g.get(t, "httproute/toystore", version))
}

func appliesServerSide(t *testing.T, g testNamespaces, _ *server.Server) {
	policy := limits("name: server-side", 20)
	succeed(t, g.apply(policy, "--server-side"))
	before := g.get(t, "ratelimitpolicy/server-side", version)
	require.NotEmpty(t, g.get(t, "ratelimitpolicy/server-side", outcome))
	for range 3 {
		succeed(t, g.apply(policy, "--server-side"))
	}
	assert.Equal(t, before, g.get(t, "ratelimitpolicy/server-side", version))
	succeed(t, g.c.KubectlWith(g.expand(policy), "diff", "--server-side", "-f", "-"))

	denied(t, g.apply(limits("name: server-side", 100), "--server-side"), "ConstraintViolated: limits.login: ")
	succeed(t, g.apply(limits("name: server-side", 30), "--server-side"))
}

func diffs(t *testing.T, g testNamespaces, _ *server.Server) {
	succeed(t, g.apply(limits("name: differ", 20)))
	diff := func(login int) (int, string) {
		got := g.c.KubectlWith(g.expand(limits("name: differ", login)), "diff", "-f", "-")
		return got.Code, got.Stdout + got.Stderr
	}
	code, text := diff(20)
	assert.Zero(t, code, text)
	assert.Empty(t, text)

	code, text = diff(30)
	assert.Equal(t, 1, code, text)
	assert.Contains(t, text, "-      - limit: 20\n+      - limit: 30\n")
	assert.NotRegexp(t, `(?m)^[-+] .*overrule\.dev/`, text, "the outcome is the same")

	code, text = diff(100)
	assert.Greater(t, code, 1)
	assert.Contains(t, text, "ConstraintViolated: ")
}

func generatesNames(t *testing.T, g testNamespaces, _ *server.Server) {
	got := g.c.KubectlWith(g.expand(limits("generateName: gen-", 20)), "create", "-f", "-", "-o", "name")
	succeed(t, got)
	name := strings.TrimSpace(got.Stdout)
	assert.Contains(t, name, "/gen-")
	assert.NotEmpty(t, g.get(t, name, outcome))
	succeed(t, g.kubectl("delete", name))

	denied(t, g.c.KubectlWith(g.expand(limits("generateName: gen-", 100)), "create", "-f", "-"), "ConstraintViolated: ")
}

func restoresAnnotations(t *testing.T, g testNamespaces, _ *server.Server) {
	succeed(t, g.apply(limits("name: restored", 20)))
	want := g.get(t, "ratelimitpolicy/restored", outcome)
	require.NotEmpty(t, want)
	succeed(t, g.kubectl("annotate", "--overwrite", "ratelimitpolicy/restored", "overrule.dev/outcome=forged"))
	assert.Equal(t, want, g.get(t, "ratelimitpolicy/restored", outcome))
	succeed(t, g.kubectl("annotate", "ratelimitpolicy/restored", "overrule.dev/outcome-"))
	assert.Equal(t, want, g.get(t, "ratelimitpolicy/restored", outcome))
	succeed(t, g.kubectl("patch", "ratelimitpolicy/restored", "--type=json", "-p", `[{"op":"remove","path":"/metadata/annotations"}]`))
	assert.Equal(t, want, g.get(t, "ratelimitpolicy/restored", outcome))

	succeed(t, g.kubectl("label", "ratelimitpolicy/restored", "team=toys"))
	assert.Equal(t, want, g.get(t, "ratelimitpolicy/restored", outcome))
	denied(t, g.kubectl("patch", "ratelimitpolicy/restored", "--type=merge", "-p", `{"spec":{"limits":{"login":{"rates":[{"limit":51,"window":"10s"}]}}}}`),
		"ConstraintViolated: ")
}

// claimedDeletion has a deletionTimestamp on create.
const claimedDeletion = `
apiVersion: kuadrant.io/v1
kind: RateLimitPolicy
metadata: {name: forged, namespace: APP, deletionTimestamp: "2026-01-01T00:00:00Z", annotations: {overrule.dev/outcome: forged}}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: toystore}
  limits: {login: {rates: [{limit: 20, window: 10s}]}}
`

// Server-side apply can create an object with a deletionTimestamp. The object is
// not being deleted, so its annotations must not be set by the user.
func annotatesClaimedDeletion(t *testing.T, g testNamespaces, _ *server.Server) {
	succeed(t, g.apply(claimedDeletion, "--server-side", "--validate=false"))
	assert.Contains(t, g.get(t, "ratelimitpolicy/forged", outcome), `"state":`)
}

// The decisions are in the log once that about a later write is.
func leavesStatusAlone(t *testing.T, g testNamespaces, s *server.Server) {
	succeed(t, g.kubectl("patch", "httproute/toystore", "--subresource=status", "--type=merge", "-p", `{"status":{"parents":[]}}`))
	succeed(t, g.kubectl("annotate", "httproute/toystore", "a=b"))
	succeed(t, g.apply(limits("name: later", 20)))
	about := func(operation, kind string) int {
		return strings.Count(s.Log(), `"operation":"`+operation+`","kind":"`+kind+`","namespace":"`+g.app+`"`)
	}
	soon(t, func() bool { return about("CREATE", "RateLimitPolicy.kuadrant.io") == 2 }, "the last write is not in the log")
	assert.Equal(t, 2, about("UPDATE", "HTTPRoute.gateway.networking.k8s.io"), "mutating and validating")
}

func deletes(t *testing.T, g testNamespaces, _ *server.Server) {
	policies := schema.GroupVersionResource{Group: "kuadrant.io", Version: "v1", Resource: "ratelimitpolicies"}
	client, err := dynamic.NewForConfig(g.c.Config)
	require.NoError(t, err)
	left := func() int {
		list, err := client.Resource(policies).Namespace(g.app).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		return len(list.Items)
	}

	succeed(t, g.apply(limits("name: a", 20)+"---"+limits("name: b", 20)))
	succeed(t, g.kubectl("delete", "ratelimitpolicy/a"))
	succeed(t, g.kubectl("delete", "ratelimitpolicies", "--all"))
	assert.Zero(t, left())

	succeed(t, g.apply(limits("name: a", 20)+"---"+limits("name: b", 20)))
	require.NoError(t, client.Resource(policies).Namespace(g.app).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
	assert.Zero(t, left())

	got := g.c.Kubectl("-n", g.infra, "delete", "authpolicy/gw-auth", "--dry-run=server")
	succeed(t, got)
	assert.Contains(t, got.Stderr, g.expand("Warning: override rules.authentication.sso of AuthPolicy INFRA/gw-auth "))
	assert.NotContains(t, got.Stderr, "changes the effective AuthPolicy", "the first warning says on how many paths")
}

// finalizes removes the finalizer of an object that would be denied if it were
// written now.
func finalizes(t *testing.T, g testNamespaces, _ *server.Server) {
	succeed(t, g.c.Kubectl("-n", g.infra, "delete", "ratelimitpolicy/gw-limits"))
	succeed(t, g.apply(limits("name: final, finalizers: [e2e.example.com/hold]", 100)))
	succeed(t, g.apply(gatewayLimits))
	// Its name sorts after "final", so it is the lower of the two even if both are
	// created in the same second.
	denied(t, g.apply(limits("name: later", 100)), "ConstraintViolated: ")

	succeed(t, g.kubectl("delete", "ratelimitpolicy/final", "--wait=false"))
	require.NotEmpty(t, g.get(t, "ratelimitpolicy/final", ".metadata.deletionTimestamp"))
	succeed(t, g.kubectl("patch", "ratelimitpolicy/final", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`))
	assert.Equal(t, 1, g.kubectl("get", "ratelimitpolicy/final").Code)
}

func deletesNamespaces(t *testing.T, g testNamespaces, _ *server.Server) {
	succeed(t, g.apply(routeAuth))
	succeed(t, g.c.Kubectl("delete", "namespace", g.app, g.infra, "--timeout=2m"))
}
