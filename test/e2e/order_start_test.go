//go:build e2e

package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/server"
)

// A server whose cluster has none of the definitions that it reads is ready, is
// in nobody's way, and judges as soon as they come, in whatever order.
func TestAServerThatStartsBeforeAnyDefinition(t *testing.T) {
	elsewhere(t, env.WithoutCRDs(), env.WithControllerAccounts())
	_, ours, gateway := folders(t)
	root, err := env.Repository(t.Context())
	require.NoError(t, err)
	policies := filepath.Join(root, "examples", "crds")
	site, err := server.Install(t.Context(), plane)
	require.NoError(t, err)
	comes := map[string]func(*testing.T){
		"Overrule's": func(t *testing.T) {
			t.Helper()
			require.NoError(t, plane.InstallCRDs(ours))
			soon(t, func() bool {
				return strings.Contains(plane.Apply(profileOf("odd", "..odd.."), "--dry-run=server").Stderr, "Invalid: ")
			}, "profiles are not judged")
		},
		"Gateway API's": func(t *testing.T) {
			t.Helper()
			require.NoError(t, plane.InstallCRDs(gateway))
			soon(t, func() bool { return plane.Apply(orphan, "--dry-run=server").Code == 0 }, "routes cannot be written")
		},
		"the policies'": func(t *testing.T) {
			t.Helper()
			require.NoError(t, plane.InstallCRDs(policies))
			soon(t, func() bool { return strings.Contains(rules(t), "ratelimitpolicies") }, "the rules do not name them")
			called(t)
		},
	}
	for _, order := range [][]string{
		{"Overrule's", "Gateway API's", "the policies'"},
		{"the policies'", "Gateway API's", "Overrule's"},
		{"Gateway API's", "Overrule's", "the policies'"},
	} {
		t.Run(strings.Join(order, ", then "), func(t *testing.T) {
			undefine(t)
			s, err := site.Boot(t.Context(), server.Options{Unprobed: true}) // it is ready
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Stop()) })
			soon(t, func() bool { return strings.Count(registered(t), "overrule") == 2 }, "it does not register itself")
			goesOn(t)
			for _, what := range order {
				comes[what](t)
				goesOn(t)
			}
			g := prepare(t, "undefined")
			judgesSoon(t, g)
			runs(t, s)
			unharmed(t, s)
		})
	}
}

// undefine deletes all definitions. The API server may forget one that was made a
// moment ago: it looks again when something changes.
func undefine(t *testing.T) {
	t.Helper()
	succeed(t, plane.Kubectl("delete", "crds", "--all", "--wait=false"))
	soon(t, func() bool {
		plane.Kubectl("label", "crds", "--all", "--overwrite", fmt.Sprintf("looked=%d", time.Now().UnixNano()))
		left := plane.Kubectl("get", "crds", "-o", "name")
		return left.Code == 0 && left.Stdout == ""
	}, "there are definitions left")
}

// orphan is a route without a gateway.
const orphan = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: default, name: orphan}
spec: {hostnames: [orphan.example.com]}
`

// One port for all that follow one another, as the Service of a cluster has it:
// nobody has to write the configurations again.
func TestScaledToZeroAndBack(t *testing.T) {
	elsewhere(t, env.WithControllerAccounts())
	g := prepare(t, "scaled")
	port, err := env.FreePort(t.Context())
	require.NoError(t, err)
	at := []string{fmt.Sprintf("--webhook-bind-address=127.0.0.1:%d", port), fmt.Sprintf("--service-port=%d", port)}
	s := start(t, at...)
	judges(t, g)
	require.NoError(t, s.Stop())
	require.Zero(t, s.Code(), "SIGTERM is a good end")

	for _, got := range []env.Result{
		g.apply(limits("name: p", 30)), g.apply(orphan), g.kubectl("delete", "ratelimitpolicy/p"),
		g.kubectl("delete", "httproute/toystore"), plane.Kubectl("-n", g.infra, "delete", "gateway/edge"),
	} {
		refused(t, got)
	}
	goesOn(t)
	before := map[string]string{"validating": webhooks(t, "validating"), "mutating": webhooks(t, "mutating")}

	s = start(t, at...)
	judgesSoon(t, g)
	for kind, was := range before {
		require.Equal(t, was, webhooks(t, kind), "they were good as they were")
	}
	runs(t, s)
}

// A server that starts without any of its rights waits for them.
func TestAServerThatStartsBeforeItsRightsDoesNotHaveToBeStartedAgain(t *testing.T) {
	elsewhere(t, env.WithControllerAccounts())
	base, _, _ := folders(t)
	g := prepare(t, "rights")
	r := newRelay(t)
	able := boot(t, r)
	r.lead(able.Webhook)
	called(t)
	judges(t, g)
	require.NoError(t, able.Stop())

	rights, err := filepath.Glob(filepath.Join(base, "rbac-*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, rights)
	for _, file := range rights {
		succeed(t, plane.Kubectl("delete", "-f", file))
	}
	succeed(t, plane.Kubectl("-n", server.Namespace, "delete", "secrets,leases", "--all")) // those of a server that had them
	s := unready(t, r)
	soon(t, func() bool { return strings.Contains(s.Log(), "forbidden") }, "it still has rights")
	refused(t, g.apply(limits("name: p", 30)))
	goesOn(t)

	for _, file := range rights {
		succeed(t, plane.Kubectl("apply", "--server-side", "-f", file))
	}
	_, err = server.Install(t.Context(), plane) // the rights that a cluster gathers by itself
	require.NoError(t, err)
	judgesSoon(t, g)
}
