package worlds

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/cel"
	"overrule.dev/overrule/internal/policykind"
)

func TestConditionCostsNearLimit(t *testing.T) {
	p := Empty(t).Decode(t, gatewayLimits(0, "dear", "overrides", merged(limits(Object{"l": rates(10)}), atLimit))).(*policykind.Policy)
	require.Len(t, p.Blocks, 1)
	data, err := json.Marshal(limits(Object{"login": manyRates()}))
	require.NoError(t, err)
	var spec Object
	require.NoError(t, json.Unmarshal(data, &spec))

	answer := p.Blocks[0].When.Evaluate(spec)
	require.NoError(t, answer.Err)
	assert.True(t, answer.Met)
	assert.Greater(t, answer.Cost, uint64(cel.Limit*85/100))
}

// At any size, the routes are full ones: of the most rules, matches and hostnames.
func TestRoutesOfAnyShape(t *testing.T) {
	s := Shape{Gateways: 2, Listeners: 3, Routes: 4, RouteRules: 16, Matches: 8, Hostnames: 16}
	for _, test := range []struct {
		own, regex bool
		want       string
	}{
		{false, false, `{"path":{"type":"PathPrefix","value":"/r00003/15/7"}} h15.example.com`},
		{true, true, `{"path":{"type":"RegularExpression","value":"/r00003/15/7/[a-z]+(/.*)?"}} r00003-h15.example.com`},
	} {
		s.OwnHostnames, s.Regex = test.own, test.regex
		c := Empty(t)
		c.Put(t, s.Objects()...)
		v, _ := c.Store.View()
		assert.Equal(t, s.Routes, v.Count(routeKind))
		assert.Equal(t, 2*3*4*16, s.Paths())
		spec := Spec(s.Route(3))
		match, err := json.Marshal(spec["rules"].([]any)[15].(Object)["matches"].([]any)[7])
		require.NoError(t, err)
		assert.Equal(t, test.want, string(match)+" "+spec["hostnames"].([]any)[15].(string))
	}
}
