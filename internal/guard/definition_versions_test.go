package guard_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// versioned is what knows the versions of a definition.
type versioned struct {
	rereading
	views []snapshot.VersionView
	err   error
}

func (v versioned) ViewsInOtherVersions(context.Context, *snapshot.View, *policykind.Definition, *policykind.Definition) ([]snapshot.VersionView, error) {
	return v.views, v.err
}

// A definition is evaluated by what each of its other versions stores.
func TestVersionsThatRemoveOverrides(t *testing.T) {
	v := world(t, base(gatewayPolicy("overrides: {strategy: patch, a: 1}")))
	without := world(t, base(gatewayPolicy("defaults: {strategy: patch, a: 1}")))
	stored := func(w *snapshot.View) *snapshot.View {
		next := v.WithKinds(w.Kinds())
		for _, k := range w.Kinds() {
			for p := range w.Policies(k.Ref()) {
				next = next.With(snapshot.Put(p))
			}
		}
		return next
	}
	definition := &policykind.Definition{}
	definition.Name, definition.Spec.Group, definition.Spec.Names.Kind = "paints.example.com", "example.com", "Paint"
	const inVersion2 = "v2, CustomResourceDefinition paints.example.com"
	for name, c := range map[string]struct {
		views []snapshot.VersionView
		want  []string
	}{
		"none":                      {nil, nil},
		"one by which nothing goes": {[]snapshot.VersionView{{Version: "v1", View: v}}, nil},
		"the second of two":         {[]snapshot.VersionView{{Version: "v1", View: v}, {Version: "v2", View: stored(without)}}, evaded("Paint infra/top", inVersion2)},
		"both":                      {[]snapshot.VersionView{{Version: "v2", View: stored(without)}, {Version: "v3", View: stored(without)}}, evaded("Paint infra/top", inVersion2)},
	} {
		t.Run(name, func(t *testing.T) {
			findingsFor := func(user string) []string {
				g := &guard.Guard{Engine: effective.NewEngine(), KindReader: versioned{views: c.views}, Permissions: bossAndDev()}
				ev, err := g.Evaluate(t.Context(), v, guard.Change{Operation: guard.Update, Before: definition, After: definition, User: userOf(user)}, nil)
				require.NoError(t, err)
				return findingsOf(t, ev, "Override")
			}
			var denials, warnings []string
			for _, what := range c.want {
				denials, warnings = append(denials, "Deny "+what), append(warnings, "Warn "+what)
			}
			assert.Equal(t, denials, findingsFor("dev"))
			assert.Equal(t, warnings, findingsFor("boss"))
		})
	}

	g := &guard.Guard{Engine: effective.NewEngine(), KindReader: versioned{err: errors.New("no answer")}}
	_, err := g.Evaluate(t.Context(), v, guard.Change{Operation: guard.Update, Before: definition, After: definition}, nil)
	require.EqualError(t, err, "convert policies to the versions of CustomResourceDefinition paints.example.com: no answer")

	g = &guard.Guard{Engine: effective.NewEngine(), Budget: 1, KindReader: versioned{views: []snapshot.VersionView{{Version: "v2", View: stored(without)}}}}
	ev, err := g.Evaluate(t.Context(), v, guard.Change{Operation: guard.Delete, Before: definition}, nil)
	require.NoError(t, err)
	assert.Empty(t, findingsOf(t, ev, "Override"), "versions of what is deleted store nothing")
}
