//go:build integration

package cache

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/test/env"
)

// paints is a kind that only a profile makes a policy kind.
const paints = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: paints.policies.example.com}
spec:
  group: policies.example.com
  scope: Namespaced
  names: {kind: Paint, plural: paints, singular: paint}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
`

const onePaint = `
apiVersion: policies.example.com/v1
kind: Paint
metadata: {name: red, namespace: app}
spec: {targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}, color: red}
`

const paintProfile = `
apiVersion: overrule.dev/v1alpha1
kind: PolicyProfile
metadata: {name: paints}
spec: {group: policies.example.com, kind: Paint, class: inherited, targets: {fields: [targetRef]}}
`

var redRef = api.Ref{Group: "policies.example.com", Kind: "Paint", Namespace: "app", Name: "red"}

// profilesComeAndGo starts without the CRD of PolicyProfiles.
func profilesComeAndGo(t *testing.T, e *env.Env) {
	r := startWatcher(t, e.Config)
	r.ready(t)
	must(t, e.Apply(paints))
	must(t, e.Kubectl("wait", "--for=condition=Established", "--timeout=2m", "crd/paints.policies.example.com"))
	soon(t, func() bool { return e.Apply(onePaint).Code == 0 }, "the kind is not served")
	root, err := env.Repository(t.Context())
	require.NoError(t, err)
	require.NoError(t, e.InstallCRDs(filepath.Join(root, "deploy", "crds")))
	assert.False(t, r.knows("Paint"))

	soon(t, func() bool { return e.Apply(paintProfile).Code == 0 }, "profiles are not served")
	soon(t, func() bool { return r.has(redRef) }, "the profile makes no difference")
	served := r.Served()
	assert.Equal(t, policykind.Cluster, served[len(served)-2].Kind.Source)
	assert.Equal(t, "paints", served[len(served)-2].Resource)
	require.Len(t, r.Statuses(), 1)
	assert.False(t, r.Statuses()[0].Refused)
	constraintsComeAndGo(t, e, r)

	// A Watcher that starts now waits for the profiles, and List reads them.
	again := startWatcher(t, e.Config)
	again.ready(t)
	assert.True(t, again.has(redRef))
	v, problems, err := List(t.Context(), e.Config)
	require.NoError(t, err)
	assert.Empty(t, problems)
	assert.NotNil(t, v.Get(redRef))
	inForce, problems, err := ListProfiles(t.Context(), e.Config)
	require.NoError(t, err)
	assert.Empty(t, problems)
	assert.Equal(t, r.Profiles(), inForce)
	listsWithoutProfiles(t, e)

	must(t, e.Kubectl("delete", "policyprofile", "paints"))
	soon(t, func() bool { return !r.knows("Paint") && !r.has(redRef) }, "the kind outlives its profile")
	_, ready := r.store.View()
	assert.True(t, ready)

	must(t, e.Kubectl("delete", "crd", profilesDefinition, "paints.policies.example.com"))
	soon(t, func() bool { return len(again.Health()) == len(r.Health()) && len(r.Served()) == 5 }, "the watches go on")
	assert.NotContains(t, r.lines.String(), `"error"=`)
}

// listsWithoutProfiles lists as users who are not allowed to list profiles, or
// definitions.
func listsWithoutProfiles(t *testing.T, e *env.Env) {
	t.Helper()
	groups := allowedTo()
	groups[api.Group] = []string{"clusterpolicyconstraints", "policyconstraints"}
	groups["policies.example.com"] = append(groups["policies.example.com"], "paints")
	v, problems, err := List(t.Context(), e.MustAddUser(t, "no-profiles", nil, rules(groups)...).Config)
	require.NoError(t, err)
	assert.Nil(t, v.Get(redRef))
	require.Len(t, problems, 1)
	assert.True(t, isForbidden(problems, profilesDefinition))
	assert.ErrorContains(t, problems[0].Err, "; only built-in profiles are used, and kinds without one are ignored")

	groups = allowedTo()
	delete(groups, "apiextensions.k8s.io")
	groups["policies.example.com"] = append(groups["policies.example.com"], "paints")
	v, _, err = List(t.Context(), e.MustAddUser(t, "no-crds-but-profiles", nil, rules(groups)...).Config)
	require.NoError(t, err)
	assert.NotNil(t, v.Get(redRef), "the kind is found by discovery")
}

// olderRoutes serves TLSRoutes only in an older version.
func olderRoutes(t *testing.T, e *env.Env) {
	const definition = "tlsroutes.gateway.networking.k8s.io"
	serve := func(v1, v1alpha3 string) {
		must(t, e.Kubectl("patch", "crd", definition, "--type=json", "-p", `[
			{"op": "test", "path": "/spec/versions/0/name", "value": "v1"},
			{"op": "replace", "path": "/spec/versions/0/served", "value": `+v1+`},
			{"op": "test", "path": "/spec/versions/2/name", "value": "v1alpha3"},
			{"op": "replace", "path": "/spec/versions/2/served", "value": `+v1alpha3+`}]`))
	}
	r := startWatcher(t, e.Config)
	r.ready(t)
	assert.Empty(t, r.ResourcesInOlderVersions())
	serve("false", "true")
	defer serve("true", "false")
	soon(t, func() bool { return len(r.ResourcesInOlderVersions()) == 1 }, "the route is not read in another version")
	assert.Equal(t, "tlsroutes", r.ResourcesInOlderVersions()[0].Resource)
	soon(t, func() bool { return r.has(tlsRef) }, "it does not arrive")
	v, _ := r.store.View()
	assert.Equal(t, []string{"one.example.com"}, v.Get(tlsRef).(*gateway.Route).Hostnames)
	soon(t, func() bool {
		o, err := r.ReadLive(t.Context(), tlsRef)
		return err == nil && o != nil && o.Ref() == tlsRef
	}, "it is not found live")
	listed, problems, err := List(t.Context(), e.Config)
	require.NoError(t, err)
	assert.Empty(t, problems)
	assert.NotNil(t, listed.Get(tlsRef))
}

// hasSchemas verifies that the schema of a definition on a real API server is
// structural.
func hasSchemas(t *testing.T, e *env.Env) {
	r := startWatcher(t, e.MustAddUser(t, "schemas", nil, rules(allowedTo())...).Config)
	r.ready(t)
	listed, _, err := List(t.Context(), e.MustAddUser(t, "schemas-list", nil, rules(allowedTo())...).Config)
	require.NoError(t, err)
	v, _ := r.store.View()
	for _, k := range v.Kinds() {
		require.NotNil(t, k.Schema(), k.Ref())
		props, err := k.Schema().Structural()
		require.NoError(t, err, k.Ref())
		assert.Equal(t, "object", props.Properties["spec"].Type, k.Ref())
		assert.True(t, k.Schema().Same(listed.Kind(k.Ref()).Schema()), "%s is read in the same way by all", k.Ref())
	}
}
