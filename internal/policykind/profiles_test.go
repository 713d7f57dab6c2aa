package policykind_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/test/messages"
)

func TestBuiltinKinds(t *testing.T) {
	kinds, err := policykind.BuiltinKinds()
	require.NoError(t, err)
	require.NotEmpty(t, kinds)
	for i, k := range kinds {
		assert.Equal(t, policykind.Builtin, k.Source)
		assert.Empty(t, k.Name, "there is no such object in a cluster")
		if i > 0 {
			assert.Negative(t, api.ComparePolicyKinds(kinds[i-1].Ref(), k.Ref()), "sorted, each once: %s", k.Ref())
		}
	}
	for _, name := range []string{"AuthPolicy", "RateLimitPolicy"} {
		k := builtin(t, name)
		assert.Equal(t, api.Inherited, k.Class)
		assert.Equal(t, api.Hierarchical, k.SameTarget)
	}
}

var (
	paintKind = api.PolicyKind{Group: "example.com", Kind: "Paint"}
	rateLimit = api.PolicyKind{Group: "kuadrant.io", Kind: "RateLimitPolicy"}
)

// profileOf returns a PolicyProfile, with a creation time if year is set.
func profileOf(t testing.TB, name string, kind api.PolicyKind, year int, text string) *api.PolicyProfile {
	p := &api.PolicyProfile{Spec: profile(t, text)}
	p.Name, p.Spec.Group, p.Spec.Kind = name, kind.Group, kind.Kind
	if year != 0 {
		p.CreationTimestamp = metav1.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return p
}

func profiles(t testing.TB) *policykind.Profiles {
	t.Helper()
	p, err := policykind.NewProfiles()
	require.NoError(t, err)
	return p
}

func names(kinds []*policykind.Kind) []string {
	var out []string
	for _, k := range kinds {
		out = append(out, k.Ref().String())
	}
	return out
}

func TestClusterProfileReplacesBuiltin(t *testing.T) {
	p := profiles(t)
	own := p.Of(rateLimit)
	require.NotNil(t, own)
	require.NoError(t, p.Put(profileOf(t, "mine", rateLimit, 2024, "class: direct"), created))
	k := p.Of(rateLimit)
	assert.Equal(t, policykind.Cluster, k.Source)
	assert.Equal(t, "mine", k.Name)
	assert.Equal(t, api.Direct, k.Class)
	refused, ok := p.Status("mine")
	assert.True(t, ok)
	assert.Nil(t, refused)
	assert.Equal(t, api.ProfileInForce{
		PolicyKind: rateLimit, Source: "cluster", Profile: "mine", Installed: true, Spec: k.PolicyProfileSpec,
	}, p.InForce(k, true))

	require.NoError(t, p.Put(profileOf(t, "mine", rateLimit, 2024, "sameTarget: none"), created))
	assert.Equal(t, api.Inherited, p.Of(rateLimit).Class, "an edit replaces it")

	p.Remove("mine")
	assert.Same(t, own, p.Of(rateLimit), "its removal brings the built-in one back")
	_, ok = p.Status("mine")
	assert.False(t, ok)
	assert.Equal(t, api.ProfileInForce{PolicyKind: rateLimit, Source: "built-in", Spec: own.PolicyProfileSpec}, p.InForce(own, false))
}

func TestOldestProfileIsInForce(t *testing.T) {
	p := profiles(t)
	require.NoError(t, p.Put(profileOf(t, "a-newer", paintKind, 2025, "class: direct"), created))
	require.NoError(t, p.Put(profileOf(t, "older", paintKind, 2024, "{}"), created))
	require.NoError(t, p.Put(profileOf(t, "b-newer", paintKind, 2025, "{}"), created))
	assert.Equal(t, "older", p.Of(paintKind).Name)
	conflicted := func(name string) api.RefusedProfile {
		return api.RefusedProfile{
			Name: name, Reason: api.Conflicted,
			Message: p.Refused(paintKind)[0].Message,
		}
	}
	assert.Equal(t, []api.RefusedProfile{conflicted("a-newer"), conflicted("b-newer")}, p.Refused(paintKind))
	for _, r := range p.Refused(paintKind) {
		assert.Contains(t, r.Message, "PolicyProfile older")
		messages.Golden(t, r.Message)
	}
	refused, ok := p.Status("b-newer")
	require.True(t, ok)
	assert.Equal(t, conflicted("b-newer"), *refused)
	assert.Equal(t, p.Refused(paintKind), p.InForce(p.Of(paintKind), true).Refused)

	p.Remove("older")
	assert.Equal(t, "a-newer", p.Of(paintKind).Name, "of the same age the first by name")
	assert.Equal(t, []string{"b-newer"}, []string{p.Refused(paintKind)[0].Name})
	p.Remove("a-newer")
	p.Remove("b-newer")
	assert.Nil(t, p.Of(paintKind))
	assert.Empty(t, p.Refused(paintKind))
}

func TestProfileWithoutCreationTime(t *testing.T) {
	p := profiles(t)
	require.NoError(t, p.Put(profileOf(t, "a", paintKind, 0, "{}"), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Unix()))
	require.NoError(t, p.Put(profileOf(t, "b", paintKind, 2025, "{}"), 0))
	assert.Equal(t, "b", p.Of(paintKind).Name)
}

func TestInvalidProfileIsNotInForce(t *testing.T) {
	p := profiles(t)
	broken := profileOf(t, "broken", rateLimit, 2020, "levels: [Gateway, Gateway]")
	err := p.Put(broken, created)
	assert.Equal(t, []string{`spec.levels[1]: Duplicate value: "Gateway"`}, messages.Fields(t, err))
	assert.Equal(t, policykind.Builtin, p.Of(rateLimit).Source)
	want := api.RefusedProfile{Name: "broken", Reason: api.Invalid, Message: err.Error()}
	assert.Equal(t, []api.RefusedProfile{want}, p.Refused(rateLimit))
	refused, ok := p.Status("broken")
	require.True(t, ok)
	assert.Equal(t, want, *refused)

	require.NoError(t, p.Put(profileOf(t, "newer", rateLimit, 2024, "{}"), created))
	assert.Equal(t, "newer", p.Of(rateLimit).Name, "though an older one is invalid")
	refused, ok = p.Status("newer")
	assert.True(t, ok)
	assert.Nil(t, refused, "one that does not hold has nothing")

	broken.Spec.Levels = nil
	require.NoError(t, p.Put(broken, created))
	assert.Equal(t, "broken", p.Of(rateLimit).Name, "the older one is in force once it is valid")
	refused, _ = p.Status("newer")
	assert.Equal(t, api.Conflicted, refused.Reason)
}

func TestProfileChangesKind(t *testing.T) {
	p := profiles(t)
	require.NoError(t, p.Put(profileOf(t, "mine", paintKind, 2024, "{}"), created))
	require.NoError(t, p.Put(profileOf(t, "mine", rateLimit, 2024, "{}"), created))
	assert.Nil(t, p.Of(paintKind))
	assert.Equal(t, "mine", p.Of(rateLimit).Name)
}

func TestKnownKinds(t *testing.T) {
	p := profiles(t)
	before := names(p.Known())
	assert.Contains(t, before, "RateLimitPolicy.kuadrant.io")
	require.NoError(t, p.Put(profileOf(t, "mine", rateLimit, 2024, "{}"), created))
	assert.Equal(t, before, names(p.Known()), "each kind once")
	require.NoError(t, p.Put(profileOf(t, "first", api.PolicyKind{Group: "a.example.com", Kind: "Paint"}, 2024, "{}"), created))
	assert.Equal(t, append([]string{"Paint.a.example.com"}, before...), names(p.Known()), "sorted by group and kind")
	require.Error(t, p.Put(profileOf(t, "first", api.PolicyKind{Group: "a.example.com", Kind: "Paint"}, 2024, "class: x"), created))
	assert.Equal(t, before, names(p.Known()), "an invalid profile makes none known")
}

func TestClone(t *testing.T) {
	p := profiles(t)
	require.NoError(t, p.Put(profileOf(t, "mine", paintKind, 2024, "{}"), created))
	c := p.Clone()
	c.Remove("mine")
	require.NoError(t, c.Put(profileOf(t, "other", rateLimit, 2024, "{}"), created))
	assert.Equal(t, "mine", p.Of(paintKind).Name)
	assert.Equal(t, policykind.Builtin, p.Of(rateLimit).Source)
	assert.Nil(t, c.Of(paintKind))
	assert.Equal(t, "other", c.Of(rateLimit).Name)
}

func TestDefined(t *testing.T) {
	p := profiles(t)
	label := map[string]string{policykind.LabelPolicy: "inherited"}
	defined := func(labels map[string]string) *policykind.Kind {
		k, err := p.Defined(crd(labels, true))
		require.NoError(t, err)
		return k
	}
	assert.Nil(t, defined(nil), "without a label and a profile it is no policy kind")
	guess := defined(label)
	require.NotNil(t, guess)
	assert.Equal(t, policykind.Label, guess.Source)
	assert.Equal(t, paintKind, guess.Ref())
	assert.Equal(t, "label", p.InForce(guess, true).Source)

	require.NoError(t, p.Put(profileOf(t, "mine", paintKind, 2024, "class: direct"), created))
	for _, l := range []map[string]string{nil, label} {
		assert.Equal(t, "mine", defined(l).Name, "a profile goes before a label")
	}
	require.Error(t, p.Put(profileOf(t, "mine", paintKind, 2024, "class: x"), created))
	assert.Equal(t, policykind.Label, defined(label).Source, "an invalid profile is none")
	assert.Equal(t, "mine", p.InForce(defined(label), true).Refused[0].Name)

	own := crd(nil, true)
	own.Spec.Group, own.Spec.Names.Kind = rateLimit.Group, rateLimit.Kind
	k, err := p.Defined(own)
	require.NoError(t, err)
	assert.Same(t, p.Of(rateLimit), k)

	core := crd(label, true)
	core.Spec.Group = "apps.k8s.io"
	_, err = p.Defined(core)
	require.ErrorContains(t, err, policykind.LabelPolicy)
	assert.Equal(t, []string{`spec.group: Invalid value: "apps.k8s.io"`}, messages.Fields(t, err))
}

func TestProfileRef(t *testing.T) {
	p := &policykind.Profile{PolicyProfile: *profileOf(t, "mine", paintKind, 0, "{}")}
	assert.Equal(t, api.Ref{Group: "overrule.dev", Kind: "PolicyProfile", Name: "mine"}, p.Ref())
}
