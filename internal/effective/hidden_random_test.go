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

// The answers to a developer are the same whatever values the policies and routes have
// that it is not allowed to get: neither the values nor whether they are equal are shown.
func TestHiddenValuesDoNotChangeAnswersInRandomWorlds(t *testing.T) {
	answers, redacted := 0, 0
	for seed := range uint64(30) {
		w := newRandomWorld(t, newDice(seed))
		plain, marked := w.marked(t, "PLAIN", false), w.marked(t, "SECRET", true)
		for _, ref := range w.objectsOf("app") {
			for _, q := range questions(t) {
				before, status := answerOf(t, plain, ref, q)
				after, _ := answerOf(t, marked, ref, q)
				require.Equal(t, before, after, "seed %d, %s\n%s", seed, ref, w)
				require.NotContains(t, before+after, "PLAIN", "seed %d, %s", seed, ref)
				require.NotContains(t, after, "SECRET", "seed %d, %s", seed, ref)
				answers++
				if status != nil && status.Redacted {
					redacted++
				}
			}
		}
	}
	assert.Greater(t, answers, 200)
	assert.Greater(t, redacted, 80)
}

// questions returns the questions about an object, without the object.
func questions(t *testing.T) []lookup.Question {
	t.Helper()
	all := []api.ReviewPart{api.ReviewItems, api.ReviewOutcomes, api.ReviewExplanations, api.ReviewReaches}
	rule, err := merge.ParseName("a")
	require.NoError(t, err)
	name := func(lookup.Field) string { return "field" }
	return []lookup.Question{
		{Parts: all},
		{Parts: all, Rule: &rule},
		{Parts: all, Request: &lookup.Request{Line: "GET http://x.example/1", Name: name, Explain: true}},
	}
}

// answerOf returns the answer to a developer as JSON, or the error.
func answerOf(t *testing.T, v *snapshot.View, ref api.Ref, q lookup.Question) (string, *api.ReviewStatus) {
	t.Helper()
	q.View, q.Engine, q.Object, q.Hides = v, effective.NewEngine(), v.Get(ref), hiddenFrom
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
// are met, and with other values in all policies and routes that are hidden, each its own.
func (w *randomWorld) marked(t *testing.T, word string, values bool) *snapshot.View {
	t.Helper()
	v, n, conditions := w.View, 0, 0
	for _, ref := range slices.SortedFunc(maps.Keys(w.texts), api.CompareRefs) {
		if !hiddenFrom(ref) {
			continue
		}
		text := w.texts[ref]
		var o object
		require.NoError(t, json.Unmarshal([]byte(text), &o))
		spec, _ := o["spec"].(object)
		mark := func(of object, keys ...string) {
			for _, key := range keys {
				if _, ok := of[key].(string); ok && values {
					n++
					of[key] = fmt.Sprintf("%s-%d", word, n)
				}
			}
		}
		switch w.Get(ref).(type) {
		case *policykind.Policy:
			mark(spec, "a", "b", "c")
			if overrides, ok := spec["overrides"].(object); ok {
				mark(overrides, "a")
				conditions++
				overrides["when"] = fmt.Sprintf("'%s' %s '%s'", word, []string{"==", "!="}[conditions%2], word)
			}
		case *gateway.Route:
			markRules(spec, mark)
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
