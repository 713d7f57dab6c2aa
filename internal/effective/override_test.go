package effective_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
)

const (
	onG  = "targetRefs: [{kind: Gateway, name: g}]\n"
	onR  = "targetRefs: [{kind: HTTPRoute, name: r}]\n"
	hard = "overrides: {strategy: patch, a: 1}"
	soft = "overrides: {strategy: patch, a: 1, when: 'spec.b == 1'}"
)

// onePath is the only path of a world with a gateway g and a route r on it.
func onePath(t testing.TB, more ...string) *effective.Effective {
	t.Helper()
	v := world(t, docs(append([]string{gatewayDoc("g", "istio", "http"), routeDoc("r", "[{}]", "g")}, more...)...))
	all := walked(t, v, effective.Scope{Objects: objectScope(routeRef("r")).Objects})
	require.Len(t, all, 1)
	return all[0]
}

func higher(name, spec string) string { return policyDoc("Paint", "infra", name, onG+spec) }
func lower(name, spec string) string  { return policyDoc("Paint", "app", name, onR+spec) }

// heldBy formats overrides, as in "a=1 of infra/top at 3 when spec.b == 1 atomic".
func heldBy(all []effective.Override) []string {
	var out []string
	for _, o := range all {
		text := fmt.Sprintf("%s=%v of %s/%s at %d", o.Key, o.Value, o.Policy.Namespace, o.Policy.Name, o.Level)
		if o.When != "" {
			text += " when " + o.When
		}
		if o.Atomic {
			text += " atomic"
		}
		out = append(out, text)
	}
	return out
}

// AppendOverrides returns overrides that are in force, or would be once their condition
// is met.
func TestAppendOverrides(t *testing.T) {
	top := fmt.Sprintf("a=1 of infra/top at %d", gateway.LevelGateway)
	own := fmt.Sprintf("a=1 of app/own at %d", gateway.LevelRoute)
	tests := map[string]struct {
		policies []string
		want     []string
	}{
		"defaults do not":                                          {[]string{higher("top", "defaults: {a: 1}")}, nil},
		"bare rules do not":                                        {[]string{higher("top", "a: 1")}, nil},
		"one that is in force":                                     {[]string{higher("top", hard)}, []string{top}},
		"an atomic one":                                            {[]string{higher("top", "overrides: {a: 1}")}, []string{top + " atomic"}},
		"one of two rules that are in force":                       {[]string{higher("top", "overrides: {strategy: patch, b: 2}"), lower("own", "overrides: {strategy: patch, a: 1, b: 1}")}, []string{fmt.Sprintf("b=2 of infra/top at %d", gateway.LevelGateway), own}},
		"one that is replaced by a higher one is not":              {[]string{higher("top", hard), lower("own", "overrides: {strategy: patch, a: 2}")}, []string{top}},
		"one that is replaced by a higher atomic one is not":       {[]string{higher("top", "overrides: {b: 1}"), lower("own", hard)}, []string{fmt.Sprintf("b=1 of infra/top at %d atomic", gateway.LevelGateway)}},
		"one with the very value of a higher one does not":         {[]string{higher("top", hard), lower("own", hard)}, []string{top}},
		"a conditional one that is met":                            {[]string{higher("top", soft), lower("own", "b: 1")}, []string{top + " when spec.b == 1"}},
		"a conditional one that is not met":                        {[]string{higher("top", soft), lower("own", "b: 2")}, []string{top + " when spec.b == 1"}},
		"a conditional one over a rule of a lower policy":          {[]string{higher("top", soft), lower("own", "b: 2\na: 3")}, []string{top + " when spec.b == 1"}},
		"a conditional one over a lower override":                  {[]string{higher("top", soft), lower("own", "overrides: {strategy: patch, a: 3}")}, []string{top + " when spec.b == 1", fmt.Sprintf("a=3 of app/own at %d", gateway.LevelRoute)}},
		"a conditional one under a higher override does not":       {[]string{higher("top", hard), lower("own", soft)}, []string{top}},
		"a conditional one under a higher conditional one":         {[]string{higher("top", "overrides: {strategy: patch, a: 1, when: 'spec.c == 1'}"), lower("own", soft)}, []string{top + " when spec.c == 1", own + " when spec.b == 1"}},
		"a null that is in force":                                  {[]string{higher("top", "overrides: {strategy: patch, a: null}")}, []string{fmt.Sprintf("a=<nil> of infra/top at %d", gateway.LevelGateway)}},
		"one at two levels once, at the higher":                    {[]string{policyDoc("Paint", "infra", "top", "targetRefs: [{kind: Gateway, name: g}, {kind: Gateway, name: g, sectionName: http}]\n"+hard)}, []string{top}},
		"one at two levels once, in whatever order they are named": {[]string{policyDoc("Paint", "infra", "top", "targetRefs: [{kind: Gateway, name: g, sectionName: http}, {kind: Gateway, name: g}]\n"+hard)}, []string{top}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			assert.ElementsMatch(t, test.want, heldBy(onePath(t, test.policies...).AppendOverrides(nil)))
		})
	}
}

// A policy sets an override if it has the same value, the same condition or none, and
// is atomic if it was, whether or not it is in force.
func TestSets(t *testing.T) {
	atomic := "overrides: {a: 1}"
	tests := map[string]struct {
		was, is []string
		want    bool
	}{
		"the same":                         {[]string{higher("top", hard)}, []string{higher("top", hard)}, true},
		"beside others":                    {[]string{higher("top", hard)}, []string{higher("top", "overrides: {strategy: patch, a: 1, b: 1}")}, true},
		"another value":                    {[]string{higher("top", hard)}, []string{higher("top", "overrides: {strategy: patch, a: 2}")}, false},
		"another key":                      {[]string{higher("top", hard)}, []string{higher("top", "overrides: {strategy: patch, b: 1}")}, false},
		"a key below it":                   {[]string{higher("top", hard)}, []string{higher("top", "overrides: {strategy: patch, a: {x: 1}}")}, false},
		"as a default":                     {[]string{higher("top", hard)}, []string{higher("top", "defaults: {a: 1}")}, false},
		"as a bare rule":                   {[]string{higher("top", hard)}, []string{higher("top", "a: 1")}, false},
		"of another policy":                {[]string{higher("top", hard)}, []string{higher("other", hard)}, false},
		"of a policy of another namespace": {[]string{higher("own", hard)}, []string{lower("own", hard)}, false},
		"lower than it was": {
			[]string{policyDoc("Paint", "app", "own", onR+hard)}, []string{policyDoc("Paint", "app", "own", "targetRefs: [{kind: HTTPRoute, name: r, sectionName: rule-1}]\n"+hard)}, false,
		},
		"higher than it was": {
			[]string{policyDoc("Paint", "app", "own", "targetRefs: [{kind: HTTPRoute, name: r, sectionName: rule-1}]\n"+hard)}, []string{policyDoc("Paint", "app", "own", onR+hard)}, true,
		},
		"as high as it was, and lower": {
			[]string{policyDoc("Paint", "app", "own", onR+hard)}, []string{policyDoc("Paint", "app", "own", "targetRefs: [{kind: HTTPRoute, name: r, sectionName: rule-1}, {kind: HTTPRoute, name: r}]\n"+hard)}, true,
		},
		"under a condition":                   {[]string{higher("top", hard)}, []string{higher("top", soft), lower("own", "b: 1")}, false},
		"under no condition any more":         {[]string{higher("top", soft), lower("own", "b: 1")}, []string{higher("top", hard)}, true},
		"under the same condition, not met":   {[]string{higher("top", soft), lower("own", "b: 1")}, []string{higher("top", soft)}, true},
		"under another condition":             {[]string{higher("top", soft), lower("own", "b: 1")}, []string{higher("top", "overrides: {strategy: patch, a: 1, when: 'spec.b == 2'}")}, false},
		"atomic no more":                      {[]string{higher("top", atomic)}, []string{higher("top", hard)}, false},
		"atomic from now on":                  {[]string{higher("top", hard)}, []string{higher("top", atomic)}, true},
		"beaten by a higher one":              {[]string{lower("own", hard)}, []string{lower("own", hard), higher("top", "overrides: {strategy: patch, a: 2}")}, true},
		"beaten by a higher atomic one":       {[]string{lower("own", hard)}, []string{lower("own", hard), higher("top", "overrides: {b: 2}")}, true},
		"an empty map is not what is nothing": {[]string{higher("top", "overrides: {strategy: patch, a: {}}")}, []string{higher("top", "overrides: {strategy: patch, a: null}")}, false},
		"an empty map":                        {[]string{higher("top", "overrides: {strategy: patch, a: {}}")}, []string{higher("top", "overrides: {strategy: patch, a: {}}")}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			held := onePath(t, test.was...).AppendOverrides(nil)
			require.Len(t, held, 1)
			assert.Equal(t, test.want, onePath(t, test.is...).Keeps(held[0]))
		})
	}
}

// Other policies can substitute one that no longer sets its override.
func TestSubstitutes(t *testing.T) {
	onListener := func(name, spec string) string {
		return policyDoc("Paint", "infra", name, "targetRefs: [{kind: Gateway, name: g, sectionName: http}]\n"+spec)
	}
	tests := map[string]struct {
		is   []string
		want []string
	}{
		"none":                      {nil, nil},
		"the policy itself is none": {[]string{onListener("top", hard)}, []string{"infra/top"}},
		"as high":                   {[]string{onListener("other", hard)}, []string{"infra/other"}},
		"higher":                    {[]string{higher("other", hard)}, []string{"infra/other"}},
		"lower":                     {[]string{lower("other", hard)}, nil},
		"two, each once": {
			[]string{onListener("other", hard), policyDoc("Paint", "infra", "more", "targetRefs: [{kind: Gateway, name: g}, {kind: Gateway, name: g, sectionName: http}]\n"+hard)},
			[]string{"infra/more", "infra/other"},
		},
		"with another value": {[]string{higher("other", "overrides: {strategy: patch, a: 2}")}, nil},
		"under a condition":  {[]string{higher("other", soft)}, nil},
		"as a default":       {[]string{higher("other", "defaults: {a: 1}")}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			held := onePath(t, onListener("top", hard)).AppendOverrides(nil)
			require.Len(t, held, 1)
			is := onePath(t, append(test.is, lower("last", "z: 1"))...)
			var got []string
			for _, p := range is.Substitutes(held[0]) {
				got = append(got, p.Namespace+"/"+p.Name)
			}
			assert.ElementsMatch(t, test.want, got)
		})
	}
}
