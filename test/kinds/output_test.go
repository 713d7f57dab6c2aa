//go:build e2e

package kinds

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
)

// compare compares the output of `kubectl overrule effective`.
func (c *kindCase) compare(t *testing.T, w namespaces, s *step, at string) {
	t.Helper()
	namespace, object := w.infra, "gateway/edge"
	if s.Of != "" {
		namespace, object, _ = strings.Cut(s.Of, " ")
	}
	var list api.EffectivePolicyList
	overrule(t, &list, "effective", "-n", namespace, object)
	if s.Effective != nil {
		assert.Equal(t, s.Effective, c.effective(&list), "%s: effective policies", at)
	}
	if s.Outcomes != nil {
		assert.Equal(t, s.Outcomes, c.outcomes(&list), "%s: outcomes", at)
	}
	if s.Outcomes != nil && s.State != "" {
		assert.Equal(t, s.State, c.outcome(t, s.Policy), "%s: kubectl overrule outcome", at)
	}
}

// outcome returns the state in the output of `kubectl overrule outcome`.
func (c *kindCase) outcome(t *testing.T, policy string) string {
	t.Helper()
	namespace, name, _ := strings.Cut(policy, "/")
	group, _, _ := strings.Cut(c.APIVersion, "/")
	var list api.OutcomeList
	overrule(t, &list, "outcome", "-n", namespace, strings.ToLower(c.Kind)+"."+group+"/"+name)
	require.Len(t, list.Items, 1)
	return string(list.Items[0].State)
}

func (c *kindCase) is(kind api.PolicyKind) bool {
	return kind.Kind == c.Kind && strings.HasPrefix(c.APIVersion, kind.Group+"/")
}

func (c *kindCase) effective(list *api.EffectivePolicyList) map[string]effectiveWant {
	out := make(map[string]effectiveWant)
	for i := range list.Items {
		item := &list.Items[i]
		if !c.is(item.PolicyKind) {
			continue
		}
		want := effectiveWant{Spec: item.Spec}
		for _, p := range item.Policies {
			want.Policies = append(want.Policies, fmt.Sprintf("%s %s", p.Policy.Name, p.State))
		}
		out[describe(item.Path)] = want
	}
	return out
}

func (c *kindCase) outcomes(list *api.EffectivePolicyList) map[string]string {
	out := make(map[string]string)
	for i := range list.Outcomes {
		o := &list.Outcomes[i]
		if c.is(o.Policy.PolicyKind()) {
			out[o.Policy.Namespace+"/"+o.Policy.Name] = string(o.State)
		}
	}
	return out
}

// describe returns a path as text, without the GatewayClass that all paths start
// with.
func describe(path []api.PathElement) string {
	var words []string
	for _, e := range path {
		switch {
		case e.Kind == "GatewayClass":
			continue
		case strings.HasSuffix(e.Kind, "Rule"), e.Kind == "Listener":
			words = append(words, e.Section)
		case e.Section != "":
			words = append(words, e.Name+":"+e.Section)
		case e.Name == "":
			words = append(words, e.Kind)
		default:
			words = append(words, e.Name)
		}
	}
	return strings.Join(words, " > ")
}

// overrule runs the plugin and decodes its output.
func overrule(t *testing.T, into any, args ...string) {
	t.Helper()
	got := plane.Overrule(append(args, "-o", "json")...)
	require.Zero(t, got.Code, "kubectl overrule %v: %s", args, got.Stderr)
	require.NoError(t, json.Unmarshal([]byte(got.Stdout), into))
}
