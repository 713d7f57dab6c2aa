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
	"overrule.dev/overrule/internal/policykind"
)

// paintCRD defines a kind that no built-in profile and no label knows.
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

// profiles returns the feed of profiles, as a reflector fills it.
func (r *rig) profilesFeed() cache.ReflectorStore {
	r.t.Helper()
	require.Contains(r.t, r.reading, profilesDefinition)
	return r.reading[profilesDefinition].into
}

// read returns the class and the source by which a kind is read.
func (r *rig) readAs(ref api.PolicyKind) string {
	for _, k := range r.reading {
		if k.policy != nil && k.policy.Ref() == ref {
			return string(k.policy.Class) + " by " + string(k.policy.Source) + " " + k.policy.Name
		}
	}
	return "not read"
}

// refusals are the profiles that are not in force, with the reason.
func (r *rig) refusals() map[string]api.State {
	out := map[string]api.State{}
	for _, s := range r.profileStatuses() {
		out[s.Name] = ""
		if s.Refused != nil {
			out[s.Name] = s.Refused.Reason
		}
	}
	return out
}

func TestPolicyKindsWaitForTheProfiles(t *testing.T) {
	r := newRig(t)
	r.replace(r.defs(authCRD, profileCRD, httpCRD))
	assert.Equal(t, []string{"policyprofiles", "httproutes"}, r.started, "how policies are to be read is not known")
	assert.False(t, r.isSurveyed())
	assert.Subset(t, r.store.Waiting(), []string{sourceProfiles, sourcePolicies})

	own := written(t, "mine", 1, "{group: kuadrant.io, kind: AuthPolicy, class: direct, targets: {fields: [targetRef]}}")
	require.NoError(t, r.profilesFeed().Replace([]any{own}, "1"))
	assert.Equal(t, []string{"policyprofiles", "httproutes", "authpolicies.kuadrant.io"}, r.started, "it is begun once")
	assert.Equal(t, "direct by cluster mine", r.readAs(authKind))
	assert.True(t, r.isSurveyed())
	assert.NotContains(t, r.store.Waiting(), sourceProfiles)
	assert.Contains(t, r.store.Waiting(), sourcePolicies)

	r.list(authCRD.obj().Name)
	assert.NotContains(t, r.store.Waiting(), sourcePolicies)
}

func TestProfilesThatMayNotBeListedAreWaitedFor(t *testing.T) {
	r := newRig(t)
	r.replace(r.defs(authCRD, profileCRD))
	r.reading[profilesDefinition].refused(errors.New("no"))
	assert.Subset(t, r.store.Waiting(), []string{sourceProfiles, sourcePolicies})
	require.Len(t, r.found(), 1)
	assert.Equal(t, "read policyprofiles.overrule.dev: no; grant get, list and watch on policyprofiles.overrule.dev", r.found()[0].String())
	require.NoError(t, r.profilesFeed().Replace(nil, "1"))
	assert.Empty(t, r.found())
	assert.Equal(t, "inherited by built-in ", r.readAs(authKind))
}

func TestTheDefinitionOfProfilesMayComeAndGo(t *testing.T) {
	r := newRig(t)
	r.replace(r.defs(authCRD, paintCRD))
	r.list(authCRD.obj().Name)
	assert.Equal(t, []string{"namespaces", "services"}, r.store.Waiting())

	r.put(r.defs(profileCRD)[0])
	assert.Equal(t, []string{"AuthPolicy.kuadrant.io"}, r.kinds(), "the others go on meanwhile")
	assert.True(t, r.isSurveyed())
	late := r.profilesFeed()
	require.NoError(t, late.Replace([]any{paint(t, "paint", 1, "direct")}, "1"))
	assert.Equal(t, "direct by cluster paint", r.readAs(paintKind))

	r.notified()
	r.remove(cache.ObjectName{Name: profilesDefinition})
	assert.Equal(t, "not read", r.readAs(paintKind), "its profile went along")
	assert.Equal(t, []string{"AuthPolicy.kuadrant.io"}, r.kinds())
	assert.True(t, r.notified())
	assert.Empty(t, r.profileStatuses())
	require.NoError(t, late.Add(paint(t, "paint", 1, "direct")))
	assert.Equal(t, "not read", r.readAs(paintKind), "an event that comes late is lost")
	assert.Equal(t, []string{"namespaces", "services"}, r.store.Waiting())
}

func TestTheDefinitionOfProfilesMayGoBeforeTheyAreListed(t *testing.T) {
	r := newRig(t)
	r.replace(r.defs(authCRD, profileCRD))
	r.replace(r.defs(authCRD))
	assert.Equal(t, []string{"namespaces", sourcePolicies, "services"}, r.store.Waiting())
	r.list(authCRD.obj().Name)
	assert.Equal(t, []string{"namespaces", "services"}, r.store.Waiting())
}

func TestAProfileChangesHowItsKindIsReadAndNoOther(t *testing.T) {
	r := newRig(t)
	r.replace(r.defs(authCRD, paintCRD, profileCRD))
	feed := r.profilesFeed()
	require.NoError(t, feed.Replace(nil, "1"))
	r.list(authCRD.obj().Name)
	r.notified()

	require.NoError(t, feed.Add(paint(t, "paint", 1, "direct")))
	assert.Equal(t, "direct by cluster paint", r.readAs(paintKind))
	assert.True(t, r.store.Pending(paintKind))
	assert.Equal(t, []string{"paints", "authpolicies"}, r.servedResources())
	assert.True(t, r.notified())
	r.list(paintCRD.obj().Name, policy("Paint", "app", "red"))
	assert.Equal(t, []string{"Paint.example.com", "AuthPolicy.kuadrant.io"}, r.kinds())

	status := paint(t, "paint", 1, "direct")
	status.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Accepted", "status": "True"}}}
	require.NoError(t, feed.Update(status))
	assert.False(t, r.store.Pending(paintKind), "a status changes nothing")
	assert.False(t, r.notified())
	assert.Equal(t, metav1.ConditionTrue, r.profileStatuses()[0].Conditions[0].Status)

	require.NoError(t, feed.Update(paint(t, "paint", 1, "inherited")))
	assert.Equal(t, "inherited by cluster paint", r.readAs(paintKind))
	assert.True(t, r.store.Pending(paintKind), "its policies are read anew")
	assert.True(t, r.notified())
	r.list(paintCRD.obj().Name, policy("Paint", "app", "red"))

	require.NoError(t, feed.Delete(paint(t, "paint", 1, "inherited")))
	assert.Equal(t, "not read", r.readAs(paintKind))
	assert.Equal(t, []string{"AuthPolicy.kuadrant.io"}, r.kinds())
	assert.True(t, r.notified())
	assert.Equal(t, []string{"policyprofiles", "authpolicies.kuadrant.io", "paints.example.com", "paints.example.com"}, r.started)
}

func TestAProfileMayComeBeforeTheKindItIsOf(t *testing.T) {
	r := newRig(t)
	r.replace(r.defs(profileCRD))
	require.NoError(t, r.profilesFeed().Replace([]any{paint(t, "paint", 1, "direct")}, "1"))
	assert.Equal(t, "not read", r.readAs(paintKind))
	assert.Equal(t, map[string]api.State{"paint": ""}, r.refusals())
	assert.False(t, r.inForce(paintKind).Installed)

	r.put(r.defs(paintCRD)[0])
	assert.Equal(t, "direct by cluster paint", r.readAs(paintKind))
	assert.True(t, r.inForce(paintKind).Installed)
}

func (r *rig) inForce(ref api.PolicyKind) api.ProfileInForce {
	for _, f := range r.profilesInForce() {
		if f.PolicyKind == ref {
			return f
		}
	}
	return api.ProfileInForce{}
}

func TestOfTwoProfilesForAKindTheOlderHolds(t *testing.T) {
	r := newRig(t)
	r.replace(r.defs(paintCRD, profileCRD))
	feed := r.profilesFeed()
	require.NoError(t, feed.Replace([]any{paint(t, "a-younger", 2, "inherited"), paint(t, "older", 1, "direct")}, "1"))
	assert.Equal(t, "direct by cluster older", r.readAs(paintKind))
	assert.Equal(t, map[string]api.State{"older": "", "a-younger": api.Conflicted}, r.refusals())
	assert.Equal(t, []api.RefusedProfile{{
		Name: "a-younger", Reason: api.Conflicted,
		Message: "PolicyProfile older is older and has Paint.example.com: delete one of the two",
	}}, r.inForce(paintKind).Refused)
	assert.Empty(t, r.found(), "that is no problem of reading")

	require.NoError(t, feed.Replace([]any{paint(t, "a-younger", 2, "inherited")}, "2"))
	assert.Equal(t, "inherited by cluster a-younger", r.readAs(paintKind))
	assert.Equal(t, map[string]api.State{"a-younger": ""}, r.refusals())
}

func TestAProfileThatMakesNoSenseNeverHolds(t *testing.T) {
	good := func() *unstructured.Unstructured { return paint(t, "good", 2, "direct") }
	for sentence, c := range map[string]struct{ spec, why string }{
		"it cannot be compiled": {
			"{group: example.com, kind: Paint, class: odd, targets: {fields: [targetRef]}}", `spec.class: Unsupported value: "odd": supported values: "inherited", "direct"`},
		"it has a field that this server does not know": {
			"{group: example.com, kind: Paint, class: direct, targets: {fields: [targetRef]}, upsideDown: true}",
			`unknown field "spec.upsideDown"; mend it, or update Overrule if it is older than the CustomResourceDefinition`},
		"it has a field of another type": {
			"{group: example.com, kind: Paint, class: direct, targets: targetRef}", "; mend it, or update Overrule"},
		"it has no spec": {"{}", "spec.kind: Required value: set the kind of the policies"},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := newRig(t)
			r.replace(r.defs(paintCRD, profileCRD))
			feed := r.profilesFeed()
			require.NoError(t, feed.Replace([]any{good(), written(t, "bad", 1, c.spec)}, "1"))
			assert.Equal(t, "direct by cluster good", r.readAs(paintKind), "though the other is older")
			assert.Equal(t, map[string]api.State{"good": "", "bad": api.Invalid}, r.refusals())
			problems := r.found()
			require.Len(t, problems, 1)
			assert.Equal(t, "policyprofiles.overrule.dev/bad", problems[0].Resource)
			assert.ErrorContains(t, problems[0].Err, "the profile is not used: ")
			assert.ErrorContains(t, problems[0].Err, c.why)

			require.NoError(t, feed.Update(written(t, "good", 2, c.spec)))
			assert.Equal(t, "not read", r.readAs(paintKind), "one that was right before does not hold any more")
			assert.Len(t, r.found(), 2)
		})
	}
}

func TestAnUnreadableProfileIsShownWithItsKind(t *testing.T) {
	r := newRig(t)
	r.replace(r.defs(profileCRD, authCRD))
	odd := written(t, "odd", 1, "{group: kuadrant.io, kind: AuthPolicy, class: direct, targets: {}, upsideDown: true}")
	require.NoError(t, r.profilesFeed().Replace([]any{odd}, "1"))
	got := r.inForce(authKind)
	assert.Equal(t, "built-in", got.Source)
	assert.True(t, got.Installed)
	require.Len(t, got.Refused, 1)
	assert.Equal(t, api.Invalid, got.Refused[0].Reason)
}

func TestProfilesShowKindsByTheirLabelAlone(t *testing.T) {
	r := newRig(t)
	r.replace(r.defs(colorCRD))
	kinds, err := policykind.BuiltinKinds()
	require.NoError(t, err)
	assert.Len(t, r.profilesInForce(), len(kinds)+1)
	got := r.inForce(colorRef)
	assert.Equal(t, "label", got.Source)
	assert.True(t, got.Installed)
	assert.False(t, r.inForce(authKind).Installed)
}

func TestAProfileBeatsALabel(t *testing.T) {
	r := newRig(t)
	r.replace(r.defs(colorCRD, profileCRD))
	own := written(t, "color", 1, "{group: policies.example.com, kind: ColorPolicy, class: direct, targets: {fields: [targetRef]}}")
	require.NoError(t, r.profilesFeed().Replace([]any{own}, "1"))
	assert.Equal(t, "direct by cluster color", r.readAs(colorRef))
	r.reading[colorCRD.obj().Name].refused(errors.New("no"))
	assert.Equal(t, []string{"colorpolicies"}, r.servedResources(), "someone asked for the kind to be judged")
	require.NoError(t, r.profilesFeed().Replace(nil, "2"))
	assert.Equal(t, "inherited by label ", r.readAs(colorRef))
	assert.Empty(t, r.found())
}

func TestChangesOfProfilesAreToldToTheirWriter(t *testing.T) {
	r := newRig(t)
	told := func() bool {
		select {
		case <-r.judged:
			return true
		default:
			return false
		}
	}
	r.replace(r.defs(profileCRD, authCRD))
	assert.False(t, told())
	feed := r.profilesFeed()
	require.NoError(t, feed.Replace([]any{paint(t, "paint", 1, "direct")}, "1"))
	assert.True(t, told())
	r.put(r.defs(paintCRD)[0])
	assert.False(t, told())
	require.NoError(t, feed.Delete(paint(t, "paint", 1, "direct")))
	assert.True(t, told())
}

func TestAProfileWhoseHeadCannotBeReadCountsAsAbsent(t *testing.T) {
	odd := paint(t, "paint", 1, "direct")
	odd.Object["status"] = "odd"
	_, err := decodeProfile(odd)
	require.ErrorContains(t, err, "read the PolicyProfile: ")
}

func TestKindsInOlderVersionsAreTold(t *testing.T) {
	r := newRig(t)
	old := tlsCRD
	old.versions = []string{"v1alpha2"}
	r.replace(r.defs(old, httpCRD))
	r.notified()
	require.Len(t, r.older(), 1)
	assert.Equal(t, "v1alpha2", r.older()[0].Version)
	tls := hierarchyKind(gatewayKind("TLSRoute"))
	assert.Equal(t, "v1alpha2", r.version(tls))

	r.put(r.defs(tlsCRD)[0])
	assert.Empty(t, r.older())
	assert.Equal(t, "v1", r.version(tls))
	assert.True(t, r.notified())
	assert.Equal(t, []string{"httproutes", "tlsroutes", "tlsroutes"}, r.started)
}
