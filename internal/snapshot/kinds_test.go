package snapshot_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
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
			late := snapshot.NewKinds().With(definitions[0]).With(c.changes...).With(definitions[1:]...)
			assert.Equal(t, asRead(k.Of(rateLimit)), asRead(late.Of(rateLimit)), "in any order")
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

func TestProfilesOfKindsThatAreNotInstalled(t *testing.T) {
	all := snapshot.NewKinds().InForce()
	assert.Len(t, all, len(policykind.BuiltinKinds()))
	for _, f := range all {
		assert.False(t, f.Installed)
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

// Of two definitions of a kind, the older served one is used; none but its own for a kind that is
// read in fixed versions.
func TestTwoDefinitions(t *testing.T) {
	definition := func(plural string, year int64, served bool) *policykind.Definition {
		d := defined(paintKind, plural, "direct")
		if d.CreationTimestamp = metav1.Unix(year, 0); !served {
			d.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
		}
		return d
	}
	paints := definition("paints", 2025, true)
	for name, c := range map[string]struct {
		other *policykind.Definition
		used  string
	}{
		"the other one is younger":     {definition("aaas", 2026, true), "paints.example.com"},
		"the other one is older":       {definition("zzzs", 2024, true), "zzzs.example.com"},
		"they are of an age":           {definition("aaas", 2025, true), "aaas.example.com"},
		"the other one is not served":  {definition("aaas", 2024, false), "paints.example.com"},
		"the other one is of no label": {defined(paintKind, "aaas", ""), "paints.example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			k := snapshot.NewKinds().With(snapshot.Put(paints), snapshot.Put(c.other))
			assert.Equal(t, c.used, k.DefinitionOf(paintKind).Name)
			for _, d := range k.Definitions() {
				kind, err := k.Policy(d)
				switch {
				case d.Name == c.used:
					assert.Same(t, k.Of(paintKind), kind)
				case d.Served() && len(c.other.Labels) > 0:
					assert.Equal(t, &policykind.DefinedError{Kind: paintKind, By: c.used}, err)
				default:
					require.NoError(t, err)
					assert.Nil(t, kind)
				}
			}
		})
	}
	for _, kind := range []api.PolicyKind{routeKind, policykind.KindProfile, constraint.Kind} {
		d := snapshot.ParseDefinition(&defined(kind, "aaas", "inherited").CustomResourceDefinition)
		_, err := snapshot.NewKinds().With(snapshot.Put(d)).Policy(d)
		assert.Equal(t, &policykind.DefinedError{Kind: kind, By: snapshot.DefinitionName(kind)}, err)
	}
}

// A kind has the schema of its definition, and stays the very same while that is the same.
func TestKindHasSchemaOfDefinition(t *testing.T) {
	typed := func(kind api.PolicyKind, field string) *policykind.Definition {
		d := defined(kind, "paints", "direct")
		d.Spec.Versions[0].Schema = &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
			Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{field: {Type: "string"}},
		}}
		return d
	}
	kinds := snapshot.NewKinds().With(snapshot.Put(typed(rateLimit, "rates")), snapshot.Put(typed(paintKind, "colors")))
	for kind, field := range map[api.PolicyKind]string{rateLimit: "rates", paintKind: "colors"} {
		props, err := kinds.Of(kind).Schema().Structural()
		require.NoError(t, err)
		assert.Contains(t, props.Properties, field)
		props2, err := kinds.Schema(kind)
		require.NoError(t, err)
		assert.Contains(t, props2.Properties, field)
	}
	assert.Nil(t, policykind.BuiltinKind(rateLimit).Schema(), "the built-in kind is shared, and has none")
	none, err := kinds.Schema(routeKind)
	require.NoError(t, err)
	assert.Nil(t, none)
	assert.Same(t, kinds.Of(paintKind), kinds.With(snapshot.Put(typed(paintKind, "colors"))).Of(paintKind))
	assert.NotSame(t, kinds.Of(paintKind), kinds.With(snapshot.Put(typed(paintKind, "shades"))).Of(paintKind))
}

// What the policies of a kind are that is read differently is not known. Writes in flight are
// applied in order. A profile that is going replaces no other one.
func TestWithKindChange(t *testing.T) {
	profiles := defined(policykind.KindProfile, "policyprofiles", "")
	profiles.Spec.Versions[0].Name = "v1alpha1"
	constraints := defined(constraint.ClusterKind, "clusterpolicyconstraints", "")
	constraints.Spec.Versions[0].Name = "v1alpha1"
	routes := defined(routeKind, "httproutes", "")
	labelled := defined(paintKind, "paints", "direct")
	labelled.CreationTimestamp = metav1.Unix(2020, 0)
	k := snapshot.NewKinds().With(snapshot.Put(profiles), snapshot.Put(labelled), snapshot.Put(constraints), snapshot.Put(routes),
		put(t, "a", rateLimit, 2024, ""), snapshot.Put(defined(rateLimit, "ratelimitpolicies", "")))
	stored := puts(policy(t, k.Of(paintKind), "p"), route(t, "r"), constraintOn(t, "Paint", "", "c", "true"))

	edited := func(d *policykind.Definition, edit func(*policykind.Definition)) *policykind.Definition {
		out := &policykind.Definition{CustomResourceDefinition: *d.DeepCopy()}
		edit(out)
		return out
	}
	second := defined(paintKind, "aaas", "direct")
	unserved := func(d *policykind.Definition) { d.Spec.Versions[0].Served = false }
	pending := edited(second, func(d *policykind.Definition) { d.Status = apiextensionsv1.CustomResourceDefinitionStatus{} })
	other := defined(api.PolicyKind{Group: "example.com", Kind: "Other"}, "aaas", "")
	profile := func(name string, year int, edits ...func(*policykind.Profile)) *policykind.Profile {
		p := put(t, name, rateLimit, year, "").Object.(*policykind.Profile)
		for _, edit := range edits {
			edit(p)
		}
		return p
	}
	owned := func(p *policykind.Profile) { p.OwnerReferences = []metav1.OwnerReference{{Name: "x"}} }
	terminating := func(p *policykind.Profile) { p.DeletionTimestamp = &metav1.Time{} }
	type writes [][2]snapshot.Object // before and after
	deleted := func(o snapshot.Object) [2]snapshot.Object { return [2]snapshot.Object{o, nil} }
	a, too := k.Profile("a"), profile("too", 2025)
	both, paint, rates := []string{"Paint", "RateLimitPolicy"}, []string{"Paint"}, []string{"RateLimitPolicy"}
	for name, c := range map[string]struct {
		also             []snapshot.Object
		writes           writes
		listed, unlisted []string
		gone             api.PolicyKind
	}{
		"a definition is written as it was":       {nil, writes{{labelled, labelled}}, both, nil, api.PolicyKind{}},
		"one of Gateway API is written as it was": {nil, writes{{routes, routes}}, both, nil, api.PolicyKind{}},
		"a profile is written as it was":          {nil, writes{{a, a}}, both, nil, api.PolicyKind{}},
		"a profile is created":                    {nil, writes{{nil, put(t, "b", paintKind, 2024, "").Object}}, rates, paint, paintKind},
		"a younger profile is created":            {nil, writes{{nil, put(t, "b", rateLimit, 2025, "").Object}}, both, nil, api.PolicyKind{}},
		"a profile says another class":            {nil, writes{{a, put(t, "a", rateLimit, 2024, "class: direct").Object}}, paint, rates, api.PolicyKind{}},
		"a profile is deleted":                    {nil, writes{deleted(a)}, paint, rates, api.PolicyKind{}},

		"a definition is deleted":                           {nil, writes{deleted(labelled)}, rates, nil, paintKind},
		"a definition is not served any more":               {nil, writes{{labelled, edited(labelled, unserved)}}, rates, nil, paintKind},
		"a definition loses its label":                      {nil, writes{{labelled, defined(paintKind, "paints", "")}}, rates, nil, paintKind},
		"that of the profiles is deleted":                   {nil, writes{deleted(profiles)}, paint, rates, api.PolicyKind{}},
		"that of a kind of Gateway API is deleted":          {nil, writes{deleted(routes)}, both, nil, routeKind},
		"that of constraints is deleted":                    {nil, writes{deleted(constraints)}, both, nil, constraint.ClusterKind},
		"that of a kind that is not read is deleted":        {nil, writes{deleted(other)}, both, nil, api.PolicyKind{}},
		"the first of two is deleted":                       {[]snapshot.Object{second}, writes{deleted(labelled)}, rates, paint, paintKind},
		"both profiles are deleted":                         {[]snapshot.Object{too}, writes{deleted(too), deleted(a)}, paint, rates, api.PolicyKind{}},
		"the profiles are not defined, and one is deleted":  {[]snapshot.Object{too}, writes{deleted(profiles), deleted(too)}, paint, rates, api.PolicyKind{}},
		"one is of another kind now, the other is deleted":  {[]snapshot.Object{too}, writes{{too, put(t, "too", other.Defines(), 2025, "").Object}, deleted(a)}, paint, rates, api.PolicyKind{}},
		"a younger profile stays":                           {[]snapshot.Object{too}, writes{deleted(a)}, both, nil, api.PolicyKind{}},
		"a younger profile has an owner":                    {[]snapshot.Object{profile("too", 2025, owned)}, writes{deleted(a)}, paint, rates, api.PolicyKind{}},
		"a younger profile waits for a finalizer":           {[]snapshot.Object{profile("too", 2025, terminating)}, writes{deleted(a)}, paint, rates, api.PolicyKind{}},
		"an older profile has an owner, and is in force":    {[]snapshot.Object{profile("too", 2023, owned)}, writes{deleted(a)}, paint, rates, api.PolicyKind{}},
		"one profile is going, and one stays":               {[]snapshot.Object{profile("too", 2025, owned), profile("third", 2026)}, writes{deleted(a)}, both, nil, api.PolicyKind{}},
		"that with an owner is deleted, and the other not":  {[]snapshot.Object{profile("too", 2023, owned)}, writes{deleted(profile("too", 2023, owned))}, both, nil, api.PolicyKind{}},
		"a second definition that is not served is edited":  {[]snapshot.Object{pending}, writes{{pending, pending}}, both, nil, api.PolicyKind{}},
		"a second definition that is served is edited":      {[]snapshot.Object{second}, writes{{second, second}}, both, nil, api.PolicyKind{}},
		"a second definition is not served any more":        {[]snapshot.Object{second}, writes{{second, pending}}, both, nil, api.PolicyKind{}},
		"a second definition is deleted":                    {[]snapshot.Object{second}, writes{deleted(second)}, both, nil, api.PolicyKind{}},
		"a definition of a kind without another is created": {nil, writes{{nil, other}}, both, nil, api.PolicyKind{}},
	} {
		t.Run(name, func(t *testing.T) {
			is := k.With(puts(c.also...)...)
			v := (&snapshot.View{}).WithKindConfig(is).WithKinds(is.All()).With(stored...)
			after := v
			for _, w := range c.writes {
				var err error
				after, err = after.WithKindChange(w[0], w[1])
				require.NoError(t, err)
			}
			kinds := func(all []*policykind.Kind) (out []string) {
				for _, k := range all {
					out = append(out, k.Kind)
				}
				return out
			}
			assert.Equal(t, c.listed, kinds(after.Kinds()))
			assert.Equal(t, c.unlisted, kinds(after.Unlisted()))
			for _, kind := range []api.PolicyKind{paintKind, routeKind, constraint.ClusterKind} {
				assert.Equal(t, kind != c.gone, after.Count(kind) == 1, kind)
				assert.Equal(t, 1, v.Count(kind), "the view stays")
			}
			assert.Len(t, v.Kinds(), 2, "the view stays")
		})
	}
	v := (&snapshot.View{}).WithKindConfig(k).WithKinds(k.All())
	for name, c := range map[string]struct {
		before, after snapshot.Object
		by            *policykind.Definition
	}{
		"a second definition is created":             {nil, pending, labelled},
		"a second definition is given the kind":      {other, second, labelled},
		"a second definition is served":              {pending, second, labelled},
		"one of a kind of Gateway API, of no plural": {nil, defined(routeKind, "aaas", ""), routes},
	} {
		_, err := v.WithKindChange(c.before, c.after)
		assert.Equal(t, &policykind.DefinedError{Kind: c.by.Defines(), By: c.by.Name}, err, name)
	}
	unread := (&snapshot.View{}).WithKindConfig(k).WithUnlisted(k.All())
	same, err := unread.WithKindChange(labelled, edited(labelled, func(d *policykind.Definition) { d.Labels["x"] = "y" }))
	require.NoError(t, err)
	assert.Len(t, same.Unlisted(), 2, "a kind that is not listed is read as before")
	less, err := unread.WithKindChange(labelled, nil)
	require.NoError(t, err)
	assert.Len(t, less.Unlisted(), 1)
}
