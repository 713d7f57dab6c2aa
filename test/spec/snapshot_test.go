package spec

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/manifest"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/explain"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/tables"
)

// world is the result of the engine for manifests.
type world struct {
	view *snapshot.View
	// items are the effective policies of the paths of the world's own kinds,
	// including paths without a policy, and of the paths with a policy of another
	// kind.
	items []api.EffectivePolicy
	// outcomes by the names of the policies.
	outcomes map[string]api.Outcome
}

// read returns a world of files below testdata and of text. Objects without a
// namespace are in "default".
func read(t *testing.T, text string, files ...string) *world {
	t.Helper()
	paths := make([]string, 0, len(files)+1)
	for _, f := range files {
		paths = append(paths, filepath.Join("testdata", f))
	}
	if text != "" {
		paths = append(paths, manifest.Stdin)
	}
	set, err := manifest.Read(paths, strings.NewReader(text))
	require.NoError(t, err)
	kinds := manifest.NewKinds(nil)
	view, err := set.View(kinds, "default")
	require.NoError(t, err)
	require.Empty(t, set.Ignored(kinds))
	return compute(t, view)
}

func compute(t *testing.T, view *snapshot.View) *world {
	t.Helper()
	w := &world{view: view, outcomes: make(map[string]api.Outcome)}
	var sum explain.Outcomes
	budget := effective.NewBudget(context.Background(), math.MaxUint64)
	err := effective.NewEngine().Walk(view, effective.Scope{All: true}, true, budget, func(e *effective.Effective) error {
		sum.Add(e)
		if len(e.Outcomes) > 0 || e.Kind.Source == policykind.Cluster {
			w.items = append(w.items, explain.Item(e))
		}
		return nil
	})
	require.NoError(t, err)
	slices.SortFunc(w.items, explain.CompareItems)
	for _, k := range view.Kinds() {
		for p := range view.Policies(k.Ref()) {
			require.NotContains(t, w.outcomes, p.Name, "two policies of one name")
			w.outcomes[p.Name] = sum.Of(view, p)
		}
	}
	return w
}

// short returns the elements of a path that the specs write.
func short(path []api.PathElement) string {
	var out []string
	for _, e := range path {
		switch e.Kind {
		case gateway.KindGatewayClass, gateway.KindNamespace, gateway.KindListener:
		case "HTTPRouteRule":
			if e.Member != "" {
				out = append(out, e.Member)
			}
		default:
			out = append(out, e.Name)
		}
	}
	return strings.Join(out, " > ")
}

// paths lists the paths as the specs write them.
func (w *world) paths() []string {
	out := make([]string, 0, len(w.items))
	for _, item := range w.items {
		out = append(out, short(item.Path))
	}
	return out
}

// at returns the one effective policy on a path in the spelling of the specs.
func (w *world) at(t *testing.T, path string) api.EffectivePolicy {
	t.Helper()
	var found []api.EffectivePolicy
	for _, item := range w.items {
		if short(item.Path) == path {
			found = append(found, item)
		}
	}
	require.Len(t, found, 1, "%s among %v", path, w.paths())
	return found[0]
}

// affecting returns the policies that affect an object: those with a rule in
// effect on a path through it (SEMANTICS section 6).
func (w *world) affecting(kind, name string) []string {
	out := []string{}
	for _, item := range w.items {
		if !slices.ContainsFunc(item.Path, func(e api.PathElement) bool { return e.Kind == kind && e.Name == name }) {
			continue
		}
		for _, r := range item.Rules {
			out = append(out, r.From.Name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// on returns the policies on a path, from the highest to the lowest.
func on(item api.EffectivePolicy) []string {
	out := make([]string, 0, len(item.Policies))
	for _, p := range item.Policies {
		out = append(out, p.Policy.Name)
	}
	return out
}

// expected is an expected result of a spec.
type expected struct {
	sentence string
	check    func(*testing.T, *world)
}

func (w *world) check(t *testing.T, all []expected) {
	t.Helper()
	for _, x := range all {
		t.Run(x.sentence, func(t *testing.T) { x.check(t, w) })
	}
}

// checkTable checks the sentences of a table: the spec on a path, the policies that affect a
// backend, or the state of a policy and the policies that override it.
func (w *world) checkTable(t *testing.T, name string) {
	t.Helper()
	for _, x := range tables.Read[[]struct {
		Sentence, Path, Backend, Policy string
		Spec                            map[string]any
		State                           api.State
		By                              []string
	}](t, "testdata/tables/"+name+".yaml") {
		check := hasState(x.Policy, x.State, x.By...)
		switch {
		case x.Path != "":
			check = hasSpec(x.Path, x.Spec)
		case x.Backend != "":
			check = isAffectedBy(x.Backend, x.By...)
		}
		t.Run(x.Sentence, func(t *testing.T) { check(t, w) })
	}
}

// hasSpec asserts the spec of the traffic on a path.
func hasSpec(path string, spec map[string]any) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		t.Helper()
		assert.Equal(t, spec, w.at(t, path).Spec)
	}
}

// isAffectedBy asserts the policies that affect a backend.
func isAffectedBy(backend string, policies ...string) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		t.Helper()
		assert.Equal(t, append([]string{}, policies...), w.affecting(gateway.KindService, backend))
	}
}

// hasState asserts the state of a policy, and the policies that override it.
func hasState(policy string, state api.State, to ...string) func(*testing.T, *world) {
	return func(t *testing.T, w *world) {
		t.Helper()
		o := w.outcomes[policy]
		assert.Equal(t, state, o.State)
		beaten := []string{}
		for _, l := range o.Lost {
			beaten = append(beaten, l.To.Name)
		}
		for _, target := range o.Targets {
			if target.By != nil {
				beaten = append(beaten, target.By.Name)
			}
		}
		assert.Equal(t, append([]string{}, to...), beaten)
	}
}

// obj is a decoded object.
type obj = map[string]any
