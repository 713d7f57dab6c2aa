package cache

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/messages"
)

// testRegistry is a registry whose reflectors are run by the test.
type testRegistry struct {
	*registry
	t       *testing.T
	started []string
	stopped []string
}

func newTestRegistry(t *testing.T) *testRegistry {
	t.Helper()
	c, err := newClients(&rest.Config{Host: "http://127.0.0.1:1"}, 0)
	require.NoError(t, err)
	r := &testRegistry{t: t, registry: newRegistry(snapshot.New(Sources...), c, Options{})}
	r.start = func(f *reflector) {
		r.started = append(r.started, f.source)
		f.cancel = func() { r.stopped = append(r.stopped, f.source) }
	}
	return r
}

func (r *testRegistry) definitionsOf(crds ...crd) []snapshot.Object {
	var out []snapshot.Object
	for _, c := range crds {
		out = append(out, snapshot.ParseDefinition(c.obj()))
	}
	return out
}

// forget deletes a definition.
func (r *testRegistry) forget(name string) {
	r.remove(api.Ref{Group: policykind.KindDefinition.Group, Kind: policykind.KindDefinition.Kind, Name: name})
}

// list gives a reflector its first list.
func (r *testRegistry) list(definition string, objects ...any) {
	r.t.Helper()
	require.Contains(r.t, r.watched, definition)
	require.NoError(r.t, r.watched[definition].store.Replace(objects, "1"))
}

func (r *testRegistry) listedKinds() []string {
	var out []string
	v, _ := r.store.View()
	for _, k := range v.Kinds() {
		out = append(out, k.Ref().String())
	}
	return out
}

// unlisted are the kinds that were never listed.
func (r *testRegistry) unlisted() []string {
	var out []string
	v, _ := r.store.View()
	for _, k := range v.Unlisted() {
		out = append(out, k.Kind)
	}
	return out
}

func (r *testRegistry) servedResources() []string {
	var out []string
	for _, s := range r.Served() {
		out = append(out, s.Resource)
	}
	return out
}

// kindsWereChanged reports whether a change was signaled, and resets it.
func (r *testRegistry) kindsWereChanged() bool {
	select {
	case <-r.kindsChanged:
		return true
	default:
		return false
	}
}

func policy(kind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
	u.SetKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetCreationTimestamp(metav1.Unix(1, 0))
	return u
}

var colorRef = api.PolicyKind{Group: colorCRD.group, Kind: colorCRD.kind}

func TestSourcesIncludeGatewayKinds(t *testing.T) {
	for _, kind := range gateway.GatewayKinds {
		b := builtinOf(gateway.KindOf(kind))
		require.NotNil(t, b, kind)
		assert.Contains(t, Sources, b.resource)
	}
	assert.Len(t, gatewayKinds, len(gateway.GatewayKinds))
	assert.Len(t, Sources, len(gatewayKinds)+len(constraintKinds)+5)
	assert.Subset(t, Sources, []string{sourceDefinitions, sourceNamespaces, sourceServices, sourceProfiles, sourcePolicies, "policyconstraints", "clusterpolicyconstraints"})
}

func TestKindNotInstalledCountsAsListed(t *testing.T) {
	r := newTestRegistry(t)
	r.replace(r.definitionsOf(httpCRD))
	assert.Equal(t, []string{"httproutes"}, r.started)
	assert.Equal(t, []string{"httproutes", "namespaces", "services"}, r.store.Waiting())
	r.list(httpCRD.obj().Name, httpRoute("a"))
	assert.Equal(t, []string{"namespaces", "services"}, r.store.Waiting())
}

func TestNothingIsListedBeforeDefinitions(t *testing.T) {
	r := newTestRegistry(t)
	r.put(r.definitionsOf(httpCRD)[0])
	r.put(r.definitionsOf(authCRD)[0])
	assert.Equal(t, []string{"httproutes"}, r.started, "policies are not read before the profiles")
	r.list(httpCRD.obj().Name)
	assert.Len(t, r.store.Waiting(), len(Sources)-1)
}

func TestRemovedGatewayKindRemovesObjects(t *testing.T) {
	r := newTestRegistry(t)
	r.replace(r.definitionsOf(httpCRD))
	into := r.watched[httpCRD.obj().Name].store
	r.list(httpCRD.obj().Name, httpRoute("a"))
	require.Len(t, storedRoutes(r.store), 1)

	r.forget(httpCRD.obj().Name)
	assert.Equal(t, []string{"httproutes"}, r.stopped)
	assert.Empty(t, storedRoutes(r.store))
	require.NoError(t, into.Add(httpRoute("late")))
	assert.Empty(t, storedRoutes(r.store), "late events are ignored")

	r.put(r.definitionsOf(httpCRD)[0])
	r.list(httpCRD.obj().Name, httpRoute("b"))
	assert.Contains(t, storedRoutes(r.store), "app/b", "it may come back")
}

func TestGatewayKindRemovedBeforeListIsNotAwaited(t *testing.T) {
	r := newTestRegistry(t)
	r.replace(r.definitionsOf(httpCRD))
	r.replace(nil)
	assert.Equal(t, []string{"namespaces", "services"}, r.store.Waiting())
}

func TestPolicyKindsOfFirstListAreAwaited(t *testing.T) {
	r := newTestRegistry(t)
	r.replace(r.definitionsOf(authCRD, colorCRD))
	assert.Equal(t, []string{"namespaces", sourcePolicies, "services"}, r.store.Waiting())
	assert.True(t, r.kindsWereChanged())
	assert.Equal(t, []string{"authpolicies", "colorpolicies"}, r.servedResources(), "pending kinds are served")

	r.list(authCRD.obj().Name, policy("AuthPolicy", "app", "a"))
	assert.Equal(t, []string{"AuthPolicy.kuadrant.io"}, r.listedKinds())
	assert.Contains(t, r.store.Waiting(), sourcePolicies)
	r.list(colorCRD.obj().Name)
	assert.NotContains(t, r.store.Waiting(), sourcePolicies)
	assert.Equal(t, []string{"AuthPolicy.kuadrant.io", "ColorPolicy.policies.example.com"}, r.listedKinds())
}

func TestLaterKindIsPending(t *testing.T) {
	r := newTestRegistry(t)
	r.replace(r.definitionsOf(authCRD))
	r.put(r.definitionsOf(colorCRD)[0])
	r.list(authCRD.obj().Name)
	assert.NotContains(t, r.store.Waiting(), sourcePolicies)
	assert.True(t, r.store.Pending(colorRef))
}

func TestKindRemovedBeforeListIsNotAwaited(t *testing.T) {
	r := newTestRegistry(t)
	r.replace(r.definitionsOf(colorCRD))
	unlabelled := colorCRD
	unlabelled.label = ""
	r.put(r.definitionsOf(unlabelled)[0])
	assert.NotContains(t, r.store.Waiting(), sourcePolicies)
	assert.False(t, r.store.Pending(colorRef))
	assert.Equal(t, []string{colorCRD.obj().Name}, r.stopped)
}

func TestProblemIsLoggedOnce(t *testing.T) {
	r := newTestRegistry(t)
	log, lines := newLogBuffer()
	r.log = log
	old := httpCRD
	old.versions = []string{"v1beta1"}
	r.replace(r.definitionsOf(old))
	r.put(r.definitionsOf(authCRD)[0])
	r.put(r.definitionsOf(old)[0])
	assert.Equal(t, 1, strings.Count(lines.String(), "cannot read kind"))
}

func TestKindMovesToAnotherDefinition(t *testing.T) {
	r := newTestRegistry(t)
	r.replace(r.definitionsOf(colorCRD))
	r.list(colorCRD.obj().Name)
	moved := colorCRD
	moved.plural = "colourpolicies"
	r.replace(r.definitionsOf(moved))
	r.list("colourpolicies.policies.example.com")
	assert.Equal(t, []string{"ColorPolicy.policies.example.com"}, r.listedKinds())
	assert.Equal(t, []string{"colourpolicies"}, r.servedResources())
}

func TestForbiddenPolicyKindIsNotAwaited(t *testing.T) {
	r := newTestRegistry(t)
	r.replace(r.definitionsOf(authCRD, colorCRD))
	r.kindsWereChanged()
	refusal := errors.New("no")
	assert.Equal(t, []string{"AuthPolicy", "ColorPolicy"}, r.unlisted())
	for _, c := range []crd{authCRD, colorCRD} {
		r.watched[c.obj().Name].onForbidden(refusal)
	}
	assert.Equal(t, []string{"AuthPolicy"}, r.unlisted(), "a label alone does not block writes")

	assert.NotContains(t, r.store.Waiting(), sourcePolicies)
	assert.True(t, r.store.Pending(colorRef))
	problems := r.Problems()
	require.Len(t, problems, 2)
	assert.Contains(t, problems[1].String(), "read colorpolicies.policies.example.com: no; ")
	messages.Golden(t, problems[1].String())
	require.ErrorIs(t, problems[1].Err, refusal)
	assert.Equal(t, []string{"authpolicies"}, r.servedResources(), "a label alone does not block writes")
	assert.True(t, r.kindsWereChanged())

	r.list(colorCRD.obj().Name)
	assert.Len(t, r.Problems(), 1)
	assert.Equal(t, []string{"authpolicies", "colorpolicies"}, r.servedResources())
	assert.True(t, r.kindsWereChanged())

	r.watched[colorCRD.obj().Name].onForbidden(refusal)
	assert.Contains(t, r.servedResources(), "colorpolicies", "a kind that was listed once stays")
	r.replace(r.definitionsOf(authCRD))
	assert.Len(t, r.Problems(), 1)
}

func TestForbiddenGatewayKindIsAwaited(t *testing.T) {
	r := newTestRegistry(t)
	r.replace(r.definitionsOf(httpCRD))
	r.watched[httpCRD.obj().Name].onForbidden(errors.New("no"))
	assert.Contains(t, r.store.Waiting(), "httproutes")
	assert.Len(t, r.Problems(), 1)
	r.list(httpCRD.obj().Name)
	assert.NotContains(t, r.store.Waiting(), "httproutes")
	assert.Empty(t, r.Problems())
}

func TestGatewayKindWithoutReadableVersion(t *testing.T) {
	r := newTestRegistry(t)
	old := httpCRD
	old.versions = []string{"v1beta1"}
	r.replace(r.definitionsOf(old))
	assert.NotContains(t, r.store.Waiting(), "httproutes")
	require.Len(t, r.Problems(), 1)
	require.ErrorIs(t, r.Problems()[0].Err, snapshot.ErrNoReadableVersion)
	r.put(r.definitionsOf(httpCRD)[0])
	assert.Empty(t, r.Problems())
	r.put(r.definitionsOf(old)[0])
	r.forget(old.obj().Name)
	assert.Empty(t, r.Problems())
}

func TestForbiddenFromReplacedReflectorIsIgnored(t *testing.T) {
	r := newTestRegistry(t)
	r.replace(r.definitionsOf(colorCRD))
	old := r.watched[colorCRD.obj().Name].reflector
	direct := colorCRD
	direct.label = "direct"
	r.put(r.definitionsOf(direct)[0])
	old.onForbidden(errors.New("no"))
	assert.Empty(t, r.Problems())
}

// A kind whose labels are read is part of the evaluation of its own writes alone.
func TestUnreadableSelectableKind(t *testing.T) {
	r := newTestRegistry(t)
	selected := crd{group: "gateway.kgateway.dev", kind: "Backend", plural: "backends", versions: []string{"v1alpha1"}}
	selecting := crd{group: selected.group, kind: "BackendConfigPolicy", plural: "backendconfigpolicies", versions: selected.versions}
	r.replace(r.definitionsOf(selected, selecting))
	k := r.watched[selected.obj().Name]
	require.NotNil(t, k)
	assert.Equal(t, api.PolicyKind{Group: selected.group, Kind: selected.kind}, k.health.get().Kind)
	assert.Len(t, r.Selectable(), 1)

	began := time.Now()
	r.list(selecting.obj().Name)
	assert.Contains(t, r.store.Waiting(), sourcePolicies)
	k.health.recordFailure(errUnconverted)
	k.unlistable = errUnconverted
	assert.True(t, (&Watcher{registry: r.registry}).leavesOut(k, began), "a new leader does not wait for it")
	k.onForbidden(errors.New("no"))
	assert.NotContains(t, r.store.Waiting(), sourcePolicies)
	assert.Empty(t, r.Selectable(), "its writes are not sent")
}
