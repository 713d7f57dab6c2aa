package snapshot_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

var rateLimit = api.PolicyKind{Group: "kuadrant.io", Kind: "RateLimitPolicy"}

// put is the write of a PolicyProfile, created in a year, 0 for none.
func put(t testing.TB, name string, kind api.PolicyKind, year int, text string) snapshot.Change {
	t.Helper()
	p := &policykind.Profile{}
	p.Name, p.Spec.Class, p.Spec.Targets.Fields = name, api.Inherited, []string{"targetRef"}
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &p.Spec))
	p.Spec.Group, p.Spec.Kind = kind.Group, kind.Kind
	if year != 0 {
		p.CreationTimestamp = metav1.Unix(int64(year), 0)
	}
	return snapshot.Put(p)
}

func remove(name string) snapshot.Change {
	return snapshot.Delete(api.Ref{Group: api.Group, Kind: api.KindPolicyProfile, Name: name})
}

// defined is a definition of a kind with a label, "" for none.
func defined(kind api.PolicyKind, plural, label string) *policykind.Definition {
	d := &policykind.Definition{}
	d.Name, d.Spec.Group = plural+"."+kind.Group, kind.Group
	d.Spec.Names.Kind, d.Spec.Names.Plural = kind.Kind, plural
	d.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true}}
	d.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue}}
	if label != "" {
		d.Labels = map[string]string{policykind.LabelPolicy: label}
	}
	return d
}

// asRead says by which profile a kind is read.
func asRead(k *policykind.Kind) string {
	if k == nil {
		return ""
	}
	return string(k.Source) + " " + k.Name
}

// The oldest valid PolicyProfile goes before the built-in one, and that before the label.
func TestProfileOfKind(t *testing.T) {
	definitions := []snapshot.Change{
		snapshot.Put(defined(policykind.KindProfile, "policyprofiles", "")), snapshot.Put(defined(paintKind, "paints", "direct")), snapshot.Put(defined(rateLimit, "ratelimitpolicies", "direct")),
	}
	definitions[0].Object.(*policykind.Definition).Spec.Versions[0].Name = "v1alpha1"
	for name, c := range map[string]struct {
		changes     []snapshot.Change
		paint, rate string
		refused     map[string]api.State
	}{
		"none":                  {nil, "label ", "built-in ", nil},
		"one for each":          {[]snapshot.Change{put(t, "a", paintKind, 2024, ""), put(t, "b", rateLimit, 2024, "class: direct")}, "cluster a", "cluster b", nil},
		"the older one":         {[]snapshot.Change{put(t, "a", paintKind, 2025, ""), put(t, "b", paintKind, 2024, "")}, "cluster b", "built-in ", map[string]api.State{"a": api.Conflicted}},
		"of an age, by name":    {[]snapshot.Change{put(t, "b", paintKind, 2025, ""), put(t, "a", paintKind, 2025, "")}, "cluster a", "built-in ", map[string]api.State{"b": api.Conflicted}},
		"one without a time":    {[]snapshot.Change{put(t, "a", paintKind, 0, ""), put(t, "b", paintKind, 2025, "")}, "cluster b", "built-in ", map[string]api.State{"a": api.Conflicted}},
		"an invalid one":        {[]snapshot.Change{put(t, "a", rateLimit, 2020, "levels: [Gateway, Gateway]"), put(t, "b", rateLimit, 2024, "")}, "label ", "cluster b", map[string]api.State{"a": api.Invalid}},
		"an invalid one, alone": {[]snapshot.Change{put(t, "a", paintKind, 2020, "class: x")}, "label ", "built-in ", map[string]api.State{"a": api.Invalid}},
		"one that is removed":   {[]snapshot.Change{put(t, "a", rateLimit, 2020, ""), remove("a")}, "label ", "built-in ", nil},
		"one that is moved":     {[]snapshot.Change{put(t, "a", rateLimit, 2020, ""), put(t, "a", paintKind, 2020, "")}, "cluster a", "built-in ", nil},
		"one that cannot be read": {[]snapshot.Change{snapshot.Put(&policykind.Profile{
			PolicyProfile: api.PolicyProfile{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: api.PolicyProfileSpec{Group: "example.com", Kind: "Paint"}}, Misread: assert.AnError,
		})}, "label ", "built-in ", map[string]api.State{"a": api.Invalid}},
		"when their kind is deleted": {[]snapshot.Change{put(t, "a", paintKind, 2024, ""), snapshot.Delete(definitions[0].Ref)}, "label ", "built-in ", nil},
	} {
		t.Run(name, func(t *testing.T) {
			before := snapshot.NewKinds().With(definitions...)
			k := before.With(c.changes...)
			assert.Equal(t, []string{c.paint, c.rate}, []string{asRead(k.Of(paintKind)), asRead(k.Of(rateLimit))})
			assert.Equal(t, []string{"label ", "built-in "}, []string{asRead(before.Of(paintKind)), asRead(before.Of(rateLimit))}, "the earlier ones stay")
			var refused map[string]api.State
			for p := range k.Profiles() {
				if r := k.Refusal(p); r != nil {
					refused = map[string]api.State{r.Name: r.Reason}
				}
			}
			assert.Equal(t, c.refused, refused)
			for _, f := range k.InForce() {
				if f.PolicyKind == paintKind {
					assert.Equal(t, c.paint, f.Source+" "+f.Profile)
					assert.True(t, f.Installed)
				}
			}
		})
	}
}

func TestKindsOfManifests(t *testing.T) {
	k := snapshot.NewKinds().ForManifests()
	assert.Len(t, k.All(), len(policykind.BuiltinKinds()), "those with a profile need no definition")
	k = k.With(put(t, "a", paintKind, 0, ""))
	assert.Equal(t, "cluster a", asRead(k.Of(paintKind)))
	d := defined(paintKind, "paints", "")
	d.Status, d.Spec.Versions = apiextensionsv1.CustomResourceDefinitionStatus{}, nil
	defined := k.With(snapshot.Put(d))
	assert.Same(t, k.Of(paintKind), defined.Of(paintKind), "a definition without a schema changes nothing")
	deleted := defined.With(snapshot.Delete(d.Ref()))
	assert.Nil(t, deleted.Of(paintKind), "it is not served any more")
	assert.NotNil(t, deleted.With(snapshot.Put(d)).Of(paintKind), "until it is defined again")
}

func TestKindsOfGivenKinds(t *testing.T) {
	k := snapshot.NewKinds().ForManifests().With(put(t, "a", paintKind, 0, "")).Of(paintKind)
	given := snapshot.KindsOf(k)
	assert.Same(t, k, given.Of(paintKind))
	assert.Equal(t, "a", given.Profile("a").Name)
	assert.Nil(t, given.With(remove("a")).Of(paintKind))
	guess := snapshot.NewKinds().With(snapshot.Put(defined(paintKind, "paints", "direct"))).Of(paintKind)
	assert.Same(t, guess, snapshot.KindsOf(guess).With(put(t, "b", rateLimit, 0, "")).Of(paintKind))
}

// What the policies of a kind are that is read differently is not known.
func TestWithKindChange(t *testing.T) {
	profiles := defined(policykind.KindProfile, "policyprofiles", "")
	profiles.Spec.Versions[0].Name = "v1alpha1"
	labelled := defined(paintKind, "paints", "direct")
	k := snapshot.NewKinds().With(snapshot.Put(profiles), snapshot.Put(labelled), put(t, "a", rateLimit, 2024, ""), snapshot.Put(defined(rateLimit, "ratelimitpolicies", "")))
	v := (&snapshot.View{}).WithKindConfig(k).WithKinds(k.All())
	for name, c := range map[string]struct {
		before, after    snapshot.Object
		listed, unlisted []string
	}{
		"a definition is written as it was": {labelled, labelled, []string{"Paint", "RateLimitPolicy"}, nil},
		"a profile is created":              {nil, put(t, "b", paintKind, 2024, "").Object, []string{"RateLimitPolicy"}, []string{"Paint"}},
		"a younger profile is created":      {nil, put(t, "b", rateLimit, 2025, "").Object, []string{"Paint", "RateLimitPolicy"}, nil},
		"a profile is deleted":              {k.Profile("a"), nil, []string{"Paint"}, []string{"RateLimitPolicy"}},
		"a definition is deleted":           {labelled, nil, []string{"RateLimitPolicy"}, nil},
		"a definition loses its label":      {labelled, defined(paintKind, "paints", ""), []string{"RateLimitPolicy"}, nil},
		"that of the profiles is deleted":   {profiles, nil, []string{"Paint"}, []string{"RateLimitPolicy"}},
	} {
		t.Run(name, func(t *testing.T) {
			after, err := v.WithKindChange(c.before, c.after)
			require.NoError(t, err)
			kinds := func(all []*policykind.Kind) (out []string) {
				for _, k := range all {
					out = append(out, k.Kind)
				}
				return out
			}
			assert.Equal(t, c.listed, kinds(after.Kinds()))
			assert.Equal(t, c.unlisted, kinds(after.Unlisted()))
			assert.Len(t, v.Kinds(), 2, "the view stays")
		})
	}
}
