//go:build integration

package cache

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/test/env"
)

// allowedTo are the permissions of a server; a test removes those of the kinds that it
// may not read.
func allowedTo() map[string][]string {
	return map[string][]string{
		"":                     {"namespaces", "services"},
		"apiextensions.k8s.io": {"customresourcedefinitions"},
		api.Group:              {"clusterpolicyconstraints", "policyconstraints", "policyprofiles"},
		api.GatewayGroup:       gatewayResources(),
		"kuadrant.io":          {"authpolicies", "ratelimitpolicies"},
		"policies.example.com": {"colorpolicies", "timeoutpolicies"},
	}
}

// gatewayResources are all resources of Gateway API that are read, except some.
func gatewayResources(but ...string) []string {
	out := []string{"backendtlspolicies"}
	for _, b := range gatewayKinds {
		if !slices.Contains(but, b.resource) {
			out = append(out, b.resource)
		}
	}
	return out
}

// TestACluster boots one control plane for all subtests.
func TestACluster(t *testing.T) {
	e := env.Start(t)
	must(t, e.Apply(things, "--server-side"))

	t.Run("follows changes", func(t *testing.T) { follows(t, e) })
	t.Run("policy kinds are installed and removed", func(t *testing.T) { kindsComeAndGo(t, e) })
	t.Run("profiles are created and deleted", func(t *testing.T) { profilesComeAndGo(t, e) })
	t.Run("TLSRoutes are served in an older version only", func(t *testing.T) { olderRoutes(t, e) })
	t.Run("GRPCRoutes are removed and reinstalled", func(t *testing.T) { grpcRoutesComeAndGo(t, e) })
	t.Run("a kind is forbidden", func(t *testing.T) { forbids(t, e) })
	t.Run("connections are cut for a while", func(t *testing.T) { heals(t, e) })
	t.Run("a new leader catches up", func(t *testing.T) { catchesUp(t, e) })
	t.Run("schemas", func(t *testing.T) { hasSchemas(t, e) })
	t.Run("Live", func(t *testing.T) { asksLive(t, e) })
	t.Run("List", func(t *testing.T) { lists(t, e) })
	t.Run("List with few permissions", func(t *testing.T) { listsForUsers(t, e) })
}

func follows(t *testing.T, e *env.Env) {
	r := startWatcher(t, e.MustAddUser(t, "server", nil, rules(allowedTo())...).Config)
	r.ready(t)
	for _, ref := range all {
		assert.True(t, r.has(ref), "%s is missing: %v", ref, r.store.Waiting())
	}
	assert.Equal(t, []string{"BackendTLSPolicy", "AuthPolicy", "RateLimitPolicy", "ColorPolicy", "TimeoutPolicy"}, r.kinds())
	var served []string
	for _, s := range r.Served() {
		assert.True(t, s.Namespaced)
		served = append(served, s.Resource+"."+s.Group+"/"+s.Version)
	}
	assert.Equal(t, []string{
		"backendtlspolicies.gateway.networking.k8s.io/v1", "authpolicies.kuadrant.io/v1", "ratelimitpolicies.kuadrant.io/v1",
		"colorpolicies.policies.example.com/v1", "timeoutpolicies.policies.example.com/v1",
	}, served)
	v, _ := r.store.View()
	assert.Positive(t, v.Get(authRef).(*policykind.Policy).Created)
	assert.Equal(t, "toys", v.NamespaceLabels("app")["team"])

	must(t, e.Kubectl("patch", "httproute", "web", "-n", "app", "--type=merge", "-p", `{"spec":{"hostnames":["two.example.com"]}}`))
	must(t, e.Kubectl("label", "namespace", "app", "team=games", "--overwrite"))
	must(t, e.Kubectl("delete", "authpolicy", "auth", "-n", "app"))
	soon(t, func() bool {
		v, _ := r.store.View()
		route, ok := v.Get(webRef).(*gateway.Route)
		return ok && route.Hostnames[0] == "two.example.com" && v.NamespaceLabels("app")["team"] == "games" && v.Get(authRef) == nil
	}, "the changes do not arrive")
	must(t, e.Apply(things, "--server-side", "--force-conflicts"))
	soon(t, func() bool { return r.has(authRef) }, "the new policy does not arrive")

	assert.Empty(t, r.Problems())
	for _, h := range r.Health() {
		assert.True(t, h.Synced, h.Source)
		assert.NoError(t, h.Err, h.Source)
		assert.Equal(t, uint64(1), h.Lists, h.Source)
		assert.False(t, h.LastContact.IsZero(), h.Source)
	}
	assert.NotContains(t, r.lines.String(), `"error"=`)
}

func kindsComeAndGo(t *testing.T, e *env.Env) {
	r := startWatcher(t, e.Config)
	r.ready(t)
	for len(r.Changed()) > 0 {
		<-r.Changed()
	}

	must(t, e.Apply(tint))
	<-r.Changed()
	soon(t, func() bool { return r.knows("TintPolicy") }, "the kind is not known")
	must(t, e.Kubectl("wait", "--for=condition=Established", "--timeout=2m", "crd/tintpolicies.policies.example.com"))
	soon(t, func() bool { return e.Apply(tintPolicy).Code == 0 }, "the kind is not served")
	soon(t, func() bool { return r.has(tintRef) }, "its policy does not arrive")
	last := r.Served()[len(r.Served())-1]
	assert.Equal(t, Served{
		Kind: last.Kind, Group: "policies.example.com", Version: "v1alpha1", Resource: "tintpolicies",
	}, last)
	assert.Equal(t, policykind.Label, last.Kind.Source)

	// A Watcher that starts now waits for it.
	again := startWatcher(t, e.Config)
	again.ready(t)
	assert.True(t, again.has(tintRef))

	must(t, e.Kubectl("delete", "crd", "tintpolicies.policies.example.com"))
	<-r.Changed()
	soon(t, func() bool { return !r.knows("TintPolicy") }, "the kind is still known")
	soon(t, func() bool { return !r.has(tintRef) }, "its policy is still there")
	assert.Len(t, r.Served(), 5)
	_, ready := r.store.View()
	assert.True(t, ready)
	must(t, e.Kubectl("annotate", "authpolicy", "auth", "-n", "app", "seen=yes", "--overwrite"))
	assert.True(t, r.knows("AuthPolicy") && r.has(authRef), "the others stay")
	assert.NotContains(t, r.lines.String(), `"error"=`, "a removed kind is no error")
}

func grpcRoutesComeAndGo(t *testing.T, e *env.Env) {
	before := startWatcher(t, e.Config)
	before.ready(t)
	require.True(t, before.has(rpcRef))
	restore := without(t, e, "grpcroutes.gateway.networking.k8s.io")
	defer restore()
	soon(t, func() bool { return !before.has(rpcRef) }, "the route outlives its kind")
	assert.True(t, before.has(webRef))

	r := startWatcher(t, e.Config)
	r.ready(t)
	_, problems, err := List(t.Context(), e.Config)
	require.NoError(t, err)
	assert.Equal(t, []Problem{{"grpcroutes.gateway.networking.k8s.io", errNotServed}}, problems)

	restore()
	soon(t, func() bool { return e.Apply(things, "--server-side").Code == 0 }, "GRPCRoutes are not served")
	soon(t, func() bool { return r.has(rpcRef) && before.has(rpcRef) }, "the route does not arrive")
	assert.NotContains(t, before.lines.String(), `"error"=`)
	assert.NotContains(t, r.lines.String(), `"error"=`)
}

func forbids(t *testing.T, e *env.Env) {
	groups := allowedTo()
	groups["kuadrant.io"] = []string{"authpolicies"}
	delete(groups, "policies.example.com")
	user := e.MustAddUser(t, "narrow", nil, rules(groups)...)
	r := startWatcher(t, user.Config)
	r.ready(t)

	assert.Equal(t, []string{"BackendTLSPolicy", "AuthPolicy"}, r.kinds())
	assert.True(t, r.store.Pending(colourRef.PolicyKind()))
	problems := r.Problems()
	require.Len(t, problems, 3)
	assert.True(t, isForbidden(problems, "colorpolicies.policies.example.com"), problems)
	assert.ErrorContains(t, problems[0].Err, "colorpolicies.policies.example.com")
	var served []string
	for _, s := range r.Served() {
		served = append(served, s.Resource)
	}
	assert.Equal(t, []string{"backendtlspolicies", "authpolicies", "ratelimitpolicies"}, served,
		"a label alone does not block writes, a built-in profile does")
	assert.Contains(t, r.failingSources(), "colorpolicies.policies.example.com")

	must(t, e.Kubectl("create", "clusterrole", "more", "--verb=get,list,watch",
		"--resource=colorpolicies.policies.example.com,timeoutpolicies.policies.example.com,ratelimitpolicies.kuadrant.io"))
	must(t, e.Kubectl("create", "clusterrolebinding", "more", "--clusterrole=more", "--user=narrow"))
	soon(t, func() bool { return len(r.kinds()) == 5 && len(r.Problems()) == 0 }, "granting the permission has no effect")
	soon(t, func() bool { return len(r.failingSources()) == 0 }, "the watches do not work")
	assert.True(t, r.has(colourRef))
	assert.Len(t, r.Served(), 5)
}

func heals(t *testing.T, e *env.Env) {
	line, cfg := newFaultyProxy(t, e.Config)
	r := startWatcher(t, cfg)
	r.ready(t)
	line.set(true)
	soon(t, func() bool { return len(r.failingSources()) == len(r.Health()) }, "dead watches are not detected")
	_, ready := r.store.View()
	assert.True(t, ready && r.has(webRef), "cached objects are kept")
	must(t, e.Kubectl("delete", "httproute", "web", "-n", "app"))
	must(t, e.Kubectl("create", "namespace", "meanwhile"))

	line.set(false)
	soon(t, func() bool { return len(r.failingSources()) == 0 }, "the watches do not recover")
	soon(t, func() bool { return !r.has(webRef) && r.has(api.Ref{Kind: "Namespace", Name: "meanwhile"}) },
		"changes in the meantime do not arrive")
	must(t, e.Apply(things, "--server-side", "--force-conflicts"))
	soon(t, func() bool { return r.has(webRef) }, "events do not arrive")
}

func asksLive(t *testing.T, e *env.Env) {
	w := startWatcher(t, e.Config)
	w.ready(t)
	for _, ref := range append([]api.Ref{appRef, authRef}, hierarchyRefs...) {
		o, err := w.ReadLive(t.Context(), ref)
		require.NoError(t, err)
		if assert.NotNil(t, o, ref) {
			assert.Equal(t, ref, o.Ref())
		}
		ref.Name = "absent"
		o, err = w.ReadLive(t.Context(), ref)
		require.NoError(t, err)
		assert.Nil(t, o)
	}
	o, err := w.ReadLive(t.Context(), api.Ref{Group: api.GatewayGroup, Kind: "GatewayClass", Namespace: "app", Name: "demo"})
	require.NoError(t, err)
	assert.Nil(t, o, "a class is in no namespace")
	o, err = w.ReadLive(t.Context(), api.Ref{Group: api.GatewayGroup, Kind: "Gateway", Name: "edge"})
	require.NoError(t, err)
	assert.Nil(t, o, "a gateway is in a namespace")

	stranger, err := New(e.MustAddUser(t, "stranger", nil).Config, startWatcher(t, e.Config).store, Options{})
	require.NoError(t, err)
	_, err = stranger.ReadLive(t.Context(), gatewayRef)
	assert.ErrorContains(t, err, "read Gateway app/edge ")
}

func lists(t *testing.T, e *env.Env) {
	v, problems, err := List(t.Context(), e.Config)
	require.NoError(t, err)
	assert.Empty(t, problems)
	for _, ref := range all {
		assert.NotNil(t, v.Get(ref), ref)
	}
	assert.Equal(t, []string{"BackendTLSPolicy", "AuthPolicy", "RateLimitPolicy", "ColorPolicy", "TimeoutPolicy"}, kindNames(v))
}

func listsForUsers(t *testing.T, e *env.Env) {
	may := func(name string, edit func(map[string][]string)) *env.User {
		groups := allowedTo()
		edit(groups)
		return e.MustAddUser(t, name, nil, rules(groups)...)
	}

	t.Run("without CRDs, the built-in kinds are found by discovery", func(t *testing.T) {
		u := may("no-crds", func(g map[string][]string) { delete(g, "apiextensions.k8s.io") })
		v, problems, err := List(t.Context(), u.Config)
		require.NoError(t, err)
		assert.Equal(t, []string{"BackendTLSPolicy", "AuthPolicy", "RateLimitPolicy"}, kindNames(v))
		assert.NotNil(t, v.Get(authRef))
		require.Len(t, problems, 1)
		assert.True(t, isForbidden(problems, "customresourcedefinitions"))
		assert.ErrorContains(t, problems[0].Err, "; policy kinds without a profile are ignored")
	})

	t.Run("forbidden kinds are reported, the rest is listed", func(t *testing.T) {
		u := may("some", func(g map[string][]string) {
			delete(g, "")
			delete(g, "kuadrant.io")
			g[api.GatewayGroup] = gatewayResources("gatewayclasses", "tcproutes")
		})
		v, problems, err := List(t.Context(), u.Config)
		require.NoError(t, err)
		assert.Equal(t, []string{"BackendTLSPolicy", "ColorPolicy", "TimeoutPolicy"}, kindNames(v))
		assert.NotNil(t, v.Get(webRef))
		var named []string
		for _, p := range problems {
			assert.True(t, isForbidden(problems, p.Resource), p)
			named = append(named, p.Resource)
		}
		assert.Equal(t, []string{"authpolicies.kuadrant.io", "gatewayclasses.gateway.networking.k8s.io", "namespaces",
			"ratelimitpolicies.kuadrant.io", "services", "tcproutes.gateway.networking.k8s.io"}, named)
	})

	for _, resource := range requiredKinds {
		t.Run("required: "+resource, func(t *testing.T) {
			u := may("without-"+resource, func(g map[string][]string) { g[api.GatewayGroup] = gatewayResources(resource) })
			_, _, err := List(t.Context(), u.Config)
			require.ErrorContains(t, err, "list "+resource+".gateway.networking.k8s.io: ")
			assert.ErrorContains(t, err, "forbidden")
		})
	}

	t.Run("no permissions", func(t *testing.T) {
		anonymous := *e.Config
		anonymous.CertData, anonymous.KeyData, anonymous.BearerToken = nil, nil, "wrong"
		_, _, err := List(t.Context(), &anonymous)
		assert.ErrorContains(t, err, e.Config.Host+": ")
	})
}
