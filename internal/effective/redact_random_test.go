package effective_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/lookup"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
)

// hiddenFrom reports what a developer with rights in namespace app is not allowed to get.
func hiddenFrom(ref api.Ref) bool { return ref.Namespace != "app" }

// The answers to a developer are the same, byte for byte, whatever values the policies and
// routes have that it is not allowed to get: neither the values nor whether they are equal
// to others are shown. So no guess of its own policies is confirmed.
func TestHiddenValuesDoNotChangeAnswersInRandomWorlds(t *testing.T) {
	answers, redacted := 0, 0
	for seed := range uint64(30) {
		d := newDice(seed)
		w := newRandomWorld(t, d)
		w.addGuesses(t, d.kinds)
		guess := func(int, bool) string { return "GUESS" }
		for _, worlds := range [][2]*snapshot.View{
			{w.marked(t, "PLAIN", nil), w.marked(t, "SECRET", secret(nil))},
			{w.marked(t, "PLAIN", guess), w.marked(t, "SECRET", secret(guess))},
		} {
			for _, ref := range w.objectsOf("app") {
				for _, q := range questions(t) {
					before, status := answerOf(t, worlds[0], ref, q)
					after, _ := answerOf(t, worlds[1], ref, q)
					require.Equal(t, before, after, "seed %d, %s, %v\n%s", seed, ref, q.Parts, w)
					require.NotContains(t, before+after, "PLAIN", "seed %d, %s", seed, ref)
					require.NotContains(t, after, "SECRET", "seed %d, %s", seed, ref)
					answers++
					if status != nil && status.Redacted {
						redacted++
					}
				}
			}
		}
	}
	assert.Greater(t, answers, 1000)
	assert.Greater(t, redacted, 400)
}

// addGuesses adds, of each kind, a policy on all objects of namespace app and one on all
// those of namespace infra. They have the same rules, so that one takes those of the other.
func (w *randomWorld) addGuesses(t *testing.T, kinds []string) {
	t.Helper()
	for _, kind := range kinds {
		for _, namespace := range []string{"app", "infra"} {
			var targets []any
			for _, ref := range slices.SortedFunc(maps.Keys(w.texts), api.CompareRefs) {
				if _, ok := w.Get(ref).(*policykind.Policy); !ok && ref.Namespace == namespace && ref.Kind != gateway.KindReferenceGrant {
					targets = append(targets, object{"group": ref.Group, "kind": ref.Kind, "name": ref.Name})
				}
			}
			spec := object{"targetRefs": targets, "a": "1", "b": "1", "c": "1"}
			if kind == "Whole" && namespace == "infra" {
				spec["overrides"] = object{"a": "1"}
			}
			w.put(decodeObject(t, w.View, doc(kind, object{"namespace": namespace, "name": "guess"}, spec)))
		}
	}
}

// secret returns the values of the objects that are not hidden, and for each hidden one a
// value that no other has.
func secret(shown func(int, bool) string) func(int, bool) string {
	return func(n int, hidden bool) string {
		switch {
		case hidden:
			return fmt.Sprintf("SECRET-%d", n)
		case shown != nil:
			return shown(n, hidden)
		default:
			return ""
		}
	}
}

// questions returns the questions about an object, without the object: about each part
// alone and about all, of which each may say something that another one says, too.
func questions(t *testing.T) []lookup.Query {
	t.Helper()
	all := []api.ReviewPart{api.ReviewItems, api.ReviewOutcomes, api.ReviewExplanations, api.ReviewReaches}
	rule, err := merge.ParseName("a")
	require.NoError(t, err)
	names := lookup.Names{Line: "field"}
	out := []lookup.Query{
		{Parts: all},
		{Parts: all, Rule: &rule},
		{Parts: all, Asked: &lookup.Request{Line: "GET http://x.example/1", Names: names, Explain: true}},
	}
	for _, part := range all {
		out = append(out, lookup.Query{Parts: []api.ReviewPart{part}}, lookup.Query{Parts: []api.ReviewPart{part}, Rule: &rule})
	}
	return out
}

// answerOf returns the answer to a developer as JSON, or the error.
func answerOf(t *testing.T, v *snapshot.View, ref api.Ref, q lookup.Query) (string, *api.ReviewStatus) {
	t.Helper()
	q.View, q.Engine, q.Objects, q.Hides, q.Limited = v, effective.NewEngine(), []snapshot.Object{v.Get(ref)}, hiddenFrom, true
	status, err := q.Answer(t.Context())
	if err != nil {
		require.ErrorIs(t, err, lookup.ErrNotFound)
		return err.Error(), nil
	}
	data, err := json.Marshal(status)
	require.NoError(t, err)
	return string(data), status
}

// objectsOf returns the objects of a namespace that a question can be about.
func (w *randomWorld) objectsOf(namespace string) []api.Ref {
	var out []api.Ref
	for ref := range w.texts {
		if ref.Namespace == namespace && ref.Kind != gateway.KindReferenceGrant {
			out = append(out, ref)
		}
	}
	return out
}

// marked returns the view with conditions on all overrides that are hidden, some of which
// are met, and with other values in policies and routes: those that value returns for the
// n-th of them, which may be hidden, unless it is "".
func (w *randomWorld) marked(t *testing.T, word string, value func(n int, hidden bool) string) *snapshot.View {
	t.Helper()
	v, n, conditions := w.View, 0, 0
	for _, ref := range slices.SortedFunc(maps.Keys(w.texts), api.CompareRefs) {
		var o object
		require.NoError(t, json.Unmarshal([]byte(w.texts[ref]), &o))
		spec, _ := o["spec"].(object)
		mark := func(of object, keys ...string) {
			for _, key := range keys {
				if _, ok := of[key].(string); ok && value != nil {
					n++
					if other := value(n, hiddenFrom(ref)); other != "" {
						of[key] = other
					}
				}
			}
		}
		switch w.Get(ref).(type) {
		case *policykind.Policy:
			overrides, ok := spec["overrides"].(object)
			mark(spec, "a", "b", "c")
			mark(overrides, "a")
			if ok && hiddenFrom(ref) {
				conditions++
				overrides["when"] = fmt.Sprintf("'%s' %s '%s'", word, []string{"==", "!="}[conditions%2], word)
			}
		case *gateway.Route:
			markRules(spec, mark)
		default:
			continue
		}
		changed, _ := decodeObject(t, w.View, o)
		v = v.With(snapshot.Put(changed))
	}
	return v
}

// markRules marks the fields of a route that policies control.
func markRules(spec object, mark func(object, ...string)) {
	rules, _ := spec["rules"].([]any)
	for _, r := range rules {
		rule, _ := r.(object)
		timeouts, _ := rule["timeouts"].(object)
		mark(timeouts, "request")
		filters, _ := rule["filters"].([]any)
		for _, f := range filters {
			filter, _ := f.(object)
			mark(filter, "value")
		}
	}
}
