//go:build integration

package rfc

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"overrule.dev/overrule/test/env"
)

func names(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = "limit-" + strconv.Itoa(i)
	}
	return out
}

// full is a spec with every field.
const full = `
limits: &all
  games:
    rates: [{limit: 1, duration: 2, unit: day}]
    counters: [auth.identity.username, context.request.http.headers.x-tenant]
    when:
    - {selector: auth.identity.group, operator: neq, value: admin}
    - {selector: auth.identity.anonymous, operator: nexists}
    triggers:
    - matches:
      - path: {type: Exact, value: /assets/}
        method: GET
        headers: [{type: RegularExpression, name: X-Canary, value: "true|1"}]
        queryParams: [{type: Exact, name: page, value: "1"}]
      hostnames: [games.toystore.acme.com, "*.dolls.acme.com"]
defaults: {limits: *all, strategy: merge, when: "spec.limits.games.rates.exists(r, r.limit > 50)"}
overrides: {limits: *all, strategy: atomic, when: "true"}
unset: [games]
remove: [limits.games]
`

// sparse leaves out all fields that have a default.
const sparse = `
limits:
  games:
    rates: [{limit: 1, unit: day}]
    triggers:
    - matches:
      - path: {value: /toys}
        headers: [{name: a, value: b}]
        queryParams: [{name: a, value: b}]
      - path: {type: Exact}
      - method: POST
`

// completed is sparse as it is stored: only the stated fields of a match get a
// default.
const completed = `
limits:
  games:
    rates: [{limit: 1, duration: 1, unit: day}]
    triggers:
    - matches:
      - path: {type: PathPrefix, value: /toys}
        headers: [{type: Exact, name: a, value: b}]
        queryParams: [{type: Exact, name: a, value: b}]
      - path: {type: Exact, value: /}
      - method: POST
`

// keepsContent reads in both versions what was written in v2beta1.
func keepsContent(t *testing.T, e *env.Env) {
	for name, c := range map[string]struct{ wrote, want string }{
		"full":   {full, full},
		"sparse": {sparse, completed},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := policies(t, e, "v2beta1").Create(t.Context(), policy(t, "v2beta1", name, c.wrote),
				metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
			require.NoError(t, err)
			want := policy(t, "v2beta1", name, c.want)
			for _, version := range []string{"v1", "v2beta1"} {
				got, err := policies(t, e, version).Get(t.Context(), name, metav1.GetOptions{})
				require.NoError(t, err)
				assert.Equal(t, "kuadrant.io/"+version, got.GetAPIVersion())
				assert.Equal(t, printed(t, want.Object["spec"]), printed(t, got.Object["spec"]), version)
			}
		})
	}
}

func printed(t *testing.T, value any) string {
	t.Helper()
	out, err := yaml.Marshal(value)
	require.NoError(t, err)
	return string(out)
}

// older is a spec of Kuadrant's v1, with limits of another form.
const older = `
limits:
  games:
    rates: [{limit: 50, window: 10s}]
    counters: [{expression: auth.identity.username}]
    when: [{predicate: request.method == "GET"}]
when: [{predicate: "true"}]
`

// keepsV1 writes a policy of Kuadrant's v1: it is unchanged, and cannot be
// mistaken for one of v2beta1.
func keepsV1(t *testing.T, e *env.Env) {
	first := policies(t, e, "v1")
	want := policy(t, "v1", "older", older)
	_, err := first.Create(t.Context(), want, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	require.NoError(t, err)
	got, err := first.Get(t.Context(), "older", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, printed(t, want.Object["spec"]), printed(t, got.Object["spec"]))

	second := policies(t, e, "v2beta1")
	got, err = second.Get(t.Context(), "older", metav1.GetOptions{})
	require.NoError(t, err)
	_, err = second.Update(t.Context(), got, metav1.UpdateOptions{})
	assert.Contains(t, fieldErrors(t, err), "spec.limits.games.rates[0].unit: Required value")
}
