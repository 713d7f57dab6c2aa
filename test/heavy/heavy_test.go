package heavy

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"

	"overrule.dev/overrule/internal/cel"
	"overrule.dev/overrule/internal/policykind"
)

func TestConditionCostsNearLimit(t *testing.T) {
	w := newWorld()
	p, ok := w.read(limitsOn(0, "dear", object{"overrides": block(limits(1, "l", 10), "merge", atLimit)})).(*policykind.Policy)
	require.True(t, ok)
	require.NoError(t, w.err)
	require.Len(t, p.Blocks, 1)
	rates := manyRates(atLimitRates)
	data, err := json.Marshal(object{"limits": object{"login": rates}})
	require.NoError(t, err)
	var spec object
	require.NoError(t, json.Unmarshal(data, &spec))

	answer := p.Blocks[0].When.Evaluate(spec)
	require.NoError(t, answer.Err)
	assert.True(t, answer.Met)
	assert.Greater(t, answer.Cost, uint64(cel.Limit*85/100))
}

func TestEveryCaseIsAWriteOfItsKind(t *testing.T) {
	seen := make(map[string]bool)
	for _, c := range Cases() {
		t.Run(c.Name, func(t *testing.T) {
			assert.False(t, seen[c.What], "%s is a duplicate", c.What)
			seen[c.What] = true
			objects, write, err := c.Build(c.Small)
			require.NoError(t, err)
			_, ready := objects.View()
			assert.True(t, ready)

			data, err := write.Review("some-uid")
			require.NoError(t, err)
			var review admissionv1.AdmissionReview
			require.NoError(t, json.Unmarshal(data, &review))
			require.NotNil(t, review.Request)
			assert.Equal(t, write.Before == nil, len(review.Request.OldObject.Raw) == 0)
			assert.Equal(t, write.After == nil, len(review.Request.Object.Raw) == 0)
			assert.NotEmpty(t, review.Request.Kind.Kind)
			assert.NotEmpty(t, review.Request.Name)
		})
	}
}

func TestAnObjectThatCannotBeReadIsAnError(t *testing.T) {
	for name, add := range map[string]func(w *World){
		"of an unknown kind":   func(w *World) { w.put(newObject("v1", "Pod", "app", "p", object{})) },
		"with invalid fields":  func(w *World) { w.put(newObject(gatewayAPI+"/v1", "HTTPRoute", "app", "r", object{"rules": "none"})) },
		"that is not JSON":     func(w *World) { w.put(object{"kind": func() {}}) },
		"that is not a policy": func(w *World) { w.putAlike(gateway(0, 1), 2) },
		"that is invalid":      func(w *World) { w.putAlike(limitsOn(0, "p", object{"targetRef": 1, "limits": 1}), 2) },
	} {
		t.Run(name, func(t *testing.T) {
			c := Case{build: func(w *World, _ Size) Write {
				add(w)
				w.fail(nil)
				return Write{}
			}}
			_, _, err := c.Build(Size{})
			assert.Error(t, err)
		})
	}
}
