package cache

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/test/messages"
)

// paintCRD defines a kind without a built-in profile and without a label.
var (
	paintCRD  = crd{group: "example.com", kind: "Paint", plural: "paints", versions: []string{"v1"}}
	paintKind = api.PolicyKind{Group: paintCRD.group, Kind: paintCRD.kind}
	authKind  = api.PolicyKind{Group: authCRD.group, Kind: authCRD.kind}
)

// written is a PolicyProfile as the API server sends it.
func written(t *testing.T, name string, created int64, spec string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{}}
	require.NoError(t, yaml.Unmarshal([]byte(spec), &u.Object))
	u.Object = map[string]any{"spec": u.Object}
	u.SetName(name)
	u.SetGeneration(1)
	u.SetCreationTimestamp(metav1.Unix(created, 0))
	return u
}

func paint(t *testing.T, name string, created int64, class string) *unstructured.Unstructured {
	t.Helper()
	return written(t, name, created, "{group: example.com, kind: Paint, class: "+class+", targets: {fields: [targetRef]}}")
}

// profilesStore returns the store of the reflector of profiles.
func (r *testRegistry) profilesStore() cache.ReflectorStore {
	r.t.Helper()
	require.Contains(r.t, r.watched, profilesDefinition)
	return r.watched[profilesDefinition].store
}

// readAs returns the class and the source by which a kind is read.
func (r *testRegistry) readAs(ref api.PolicyKind) string {
	for _, k := range r.watched {
		if k.policy != nil && k.policy.Ref() == ref {
			return string(k.policy.Class) + " by " + string(k.policy.Source) + " " + k.policy.Name
		}
	}
	return "not read"
}

func TestPolicyKindsWaitForProfiles(t *testing.T) {
	r := newTestRegistry(t)
	r.replace(r.definitionsOf(authCRD, profileCRD, httpCRD))
	assert.Equal(t, []string{"policyprofiles", "httproutes"}, r.started, "policies are not read before the profiles")
	assert.False(t, r.Discovered())
	assert.Subset(t, r.store.Waiting(), []string{sourceProfiles, sourcePolicies})

	own := written(t, "mine", 1, "{group: kuadrant.io, kind: AuthPolicy, class: direct, targets: {fields: [targetRef]}}")
	require.NoError(t, r.profilesStore().Replace([]any{own}, "1"))
	assert.Equal(t, []string{"policyprofiles", "httproutes", "authpolicies.kuadrant.io"}, r.started, "it is begun once")
	assert.Equal(t, "direct by cluster mine", r.readAs(authKind))
	assert.True(t, r.Discovered())
	assert.NotContains(t, r.store.Waiting(), sourceProfiles)
	assert.Contains(t, r.store.Waiting(), sourcePolicies)

	r.list(authCRD.obj().Name)
	assert.NotContains(t, r.store.Waiting(), sourcePolicies)
}

func TestForbiddenProfilesAreAwaited(t *testing.T) {
	r := newTestRegistry(t)
	r.replace(r.definitionsOf(authCRD, profileCRD))
	r.watched[profilesDefinition].onForbidden(errors.New("no"))
	assert.Subset(t, r.store.Waiting(), []string{sourceProfiles, sourcePolicies})
	require.Len(t, r.Problems(), 1)
	assert.Contains(t, r.Problems()[0].String(), "read policyprofiles.overrule.dev: no; ")
	messages.Golden(t, r.Problems()[0].String())
	require.NoError(t, r.profilesStore().Replace(nil, "1"))
	assert.Empty(t, r.Problems())
	assert.Equal(t, "inherited by built-in ", r.readAs(authKind))
}

func TestProfileDefinitionCreatedAndDeleted(t *testing.T) {
	r := newTestRegistry(t)
	r.replace(r.definitionsOf(authCRD, paintCRD))
	r.list(authCRD.obj().Name)
	assert.Equal(t, []string{"namespaces", "services"}, r.store.Waiting())

	r.put(r.definitionsOf(profileCRD)[0])
	assert.Equal(t, []string{"AuthPolicy.kuadrant.io"}, r.listedKinds(), "other kinds are still read")
	assert.True(t, r.Discovered())
	late := r.profilesStore()
	require.NoError(t, late.Replace([]any{paint(t, "paint", 1, "direct")}, "1"))
	assert.Equal(t, "direct by cluster paint", r.readAs(paintKind))

	r.kindsWereChanged()
	r.forget(profilesDefinition)
	assert.Equal(t, "not read", r.readAs(paintKind), "its profile was removed")
	assert.Equal(t, []string{"AuthPolicy.kuadrant.io"}, r.listedKinds())
	assert.True(t, r.kindsWereChanged())
	assert.Empty(t, r.Statuses())
	require.NoError(t, late.Add(paint(t, "paint", 1, "direct")))
	assert.Equal(t, "not read", r.readAs(paintKind), "late events are ignored")
	assert.Equal(t, []string{"namespaces", "services"}, r.store.Waiting())
}

func TestProfileDefinitionDeletedBeforeList(t *testing.T) {
	r := newTestRegistry(t)
	r.replace(r.definitionsOf(authCRD, profileCRD))
	r.replace(r.definitionsOf(authCRD))
	assert.Equal(t, []string{"namespaces", sourcePolicies, "services"}, r.store.Waiting())
	r.list(authCRD.obj().Name)
	assert.Equal(t, []string{"namespaces", "services"}, r.store.Waiting())
}

func TestProfileRestartsItsKindOnly(t *testing.T) {
	r := newTestRegistry(t)
	r.replace(r.definitionsOf(authCRD, paintCRD, profileCRD))
	store := r.profilesStore()
	require.NoError(t, store.Replace(nil, "1"))
	r.list(authCRD.obj().Name)
	r.kindsWereChanged()
	require.Len(t, r.statusChanged, 1)
	<-r.statusChanged

	require.NoError(t, store.Add(paint(t, "paint", 1, "direct")))
	assert.Equal(t, "direct by cluster paint", r.readAs(paintKind))
	assert.True(t, r.store.Pending(paintKind))
	assert.Equal(t, []string{"paints", "authpolicies"}, r.servedResources())
	assert.Len(t, r.statusChanged, 1)
	assert.True(t, r.kindsWereChanged())
	r.list(paintCRD.obj().Name, policy("Paint", "app", "red"))
	assert.Equal(t, []string{"Paint.example.com", "AuthPolicy.kuadrant.io"}, r.listedKinds())

	status := paint(t, "paint", 1, "direct")
	status.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Accepted", "status": "True"}}}
	require.NoError(t, store.Update(status))
	assert.False(t, r.store.Pending(paintKind), "a status changes nothing")
	assert.False(t, r.kindsWereChanged())
	assert.Equal(t, metav1.ConditionTrue, r.Statuses()[0].Conditions[0].Status)

	require.NoError(t, store.Update(paint(t, "paint", 1, "inherited")))
	assert.Equal(t, "inherited by cluster paint", r.readAs(paintKind))
	assert.True(t, r.store.Pending(paintKind), "its policies are relisted")
	assert.True(t, r.kindsWereChanged())
	r.list(paintCRD.obj().Name, policy("Paint", "app", "red"))

	require.Len(t, r.statusChanged, 1)
	<-r.statusChanged
	require.NoError(t, store.Delete(paint(t, "paint", 1, "inherited")))
	assert.Equal(t, "not read", r.readAs(paintKind))
	assert.Equal(t, []string{"AuthPolicy.kuadrant.io"}, r.listedKinds())
	assert.True(t, r.kindsWereChanged())
	assert.Len(t, r.statusChanged, 1)
	assert.Equal(t, []string{"policyprofiles", "authpolicies.kuadrant.io", "paints.example.com", "paints.example.com"}, r.started)
}

func TestProfileWithInvalidMetadataIsAbsent(t *testing.T) {
	odd := paint(t, "paint", 1, "direct")
	odd.Object["status"] = "odd"
	_, err := decodeProfile(odd)
	require.ErrorContains(t, err, "read the PolicyProfile: ")
}

func TestOlder(t *testing.T) {
	r := newTestRegistry(t)
	old := tlsCRD
	old.versions = []string{"v1alpha2"}
	r.replace(r.definitionsOf(old, httpCRD))
	r.kindsWereChanged()
	require.Len(t, r.ResourcesInOlderVersions(), 1)
	assert.Equal(t, "v1alpha2", r.ResourcesInOlderVersions()[0].Version)
	tls := builtinOf(gateway.KindOf("TLSRoute"))
	assert.Equal(t, "v1alpha2", r.versionOf(tls))

	r.put(r.definitionsOf(tlsCRD)[0])
	assert.Empty(t, r.ResourcesInOlderVersions())
	assert.Equal(t, "v1", r.versionOf(tls))
	assert.True(t, r.kindsWereChanged())
	assert.Equal(t, []string{"httproutes", "tlsroutes", "tlsroutes"}, r.started)
}

// What a profile that is misread means is not known: another one is in force.
func TestMisreadProfileIsRefused(t *testing.T) {
	for sentence, c := range map[string]struct{ spec, why string }{
		"it has a field that this server does not know": {
			"{group: example.com, kind: Paint, class: direct, targets: {fields: [targetRef]}, upsideDown: true}",
			`unknown field "spec.upsideDown"; `},
		"it has a field of another type": {
			"{group: example.com, kind: Paint, class: direct, targets: targetRef}", "from: string"},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := newTestRegistry(t)
			r.replace(r.definitionsOf(paintCRD, profileCRD))
			require.NoError(t, r.profilesStore().Replace([]any{paint(t, "good", 2, "direct"), written(t, "bad", 1, c.spec)}, "1"))
			assert.Equal(t, "direct by cluster good", r.readAs(paintKind), "although the other is older")
			assert.Equal(t, string(api.Invalid), r.Statuses()[0].Reason)
			assert.False(t, r.Statuses()[1].Refused)
			problems := r.Problems()
			require.Len(t, problems, 1)
			assert.Equal(t, "policyprofiles.overrule.dev/bad", problems[0].Resource)
			assert.ErrorContains(t, problems[0].Err, c.why)
			messages.Golden(t, problems[0].Err.Error())
		})
	}
}
