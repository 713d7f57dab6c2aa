//go:build e2e

package kinds

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/test/env"
)

// Policies of each kind that has a built-in profile are judged, and come to
// what the kind's row in docs/policy-kinds.md says.
func TestKinds(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	for _, file := range files {
		for _, c := range load(t, file) {
			t.Run(c.name(), func(t *testing.T) {
				t.Parallel()
				c.play(t)
			})
		}
	}
}

// No built-in profile is without a case.
func TestEveryBuiltInKindHasACase(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	var got []string
	for _, file := range files {
		for _, c := range load(t, file) {
			group, _, _ := strings.Cut(c.APIVersion, "/")
			got = append(got, c.Kind+"."+group)
		}
	}
	profiles, err := policykind.NewProfiles()
	require.NoError(t, err)
	var want []string
	for _, kind := range profiles.Known() {
		want = append(want, kind.Ref().String())
	}
	slices.Sort(got)
	slices.Sort(want)
	assert.Equal(t, want, got)
}

func (c *kindCase) play(t *testing.T) {
	w := worldOf(c.name())
	w.make(t)
	if len(c.Given) > 0 {
		apply(t, documents(t, c.Given))
	}
	for i := range c.Steps {
		c.step(t, w, i)
	}
}

// documents are objects as the documents of one manifest.
func documents(t *testing.T, objects []map[string]any) string {
	t.Helper()
	var out []string
	for _, o := range objects {
		data, err := json.Marshal(o)
		require.NoError(t, err)
		out = append(out, string(data))
	}
	return strings.Join(out, "\n---\n")
}

// apply applies what is no policy.
func apply(t *testing.T, manifest string) {
	t.Helper()
	got := plane.Apply(manifest, "--server-side")
	require.Zero(t, got.Code, got.Stderr)
}

func (c *kindCase) step(t *testing.T, w world, i int) {
	t.Helper()
	s := &c.Steps[i]
	at := fmt.Sprintf("step %d: %s%s", i+1, s.Policy, s.Delete)
	switch {
	case s.Delete != "":
		namespace, name, _ := strings.Cut(s.Delete, "/")
		s.told(t, plane.Kubectl("delete", "-n", namespace, c.resource(), name), at)
	case s.Policy != "":
		s.told(t, plane.Apply(c.manifest(t, s)), at)
	case s.Objects != nil:
		apply(t, documents(t, s.Objects))
	}
	if s.State != "" {
		assert.Equal(t, s.State, c.annotated(t, s.Policy), "%s: the state in the annotation", at)
	}
	if s.Effective != nil || s.Outcomes != nil {
		c.compare(t, w, s, at)
	}
}

// resource is the kind as kubectl takes it.
func (c *kindCase) resource() string {
	group, version, _ := strings.Cut(c.APIVersion, "/")
	return strings.ToLower(c.Kind) + "." + version + "." + group
}

func (c *kindCase) manifest(t *testing.T, s *step) string {
	t.Helper()
	namespace, name, _ := strings.Cut(s.Policy, "/")
	data, err := json.Marshal(map[string]any{
		"apiVersion": c.APIVersion, "kind": c.Kind, "spec": s.Spec,
		"metadata": map[string]any{"namespace": namespace, "name": name, "annotations": s.Annotations},
	})
	require.NoError(t, err)
	return string(data)
}

// reachText is in the warning of how far a write reaches, which is not compared.
const reachText = "changes the effective policy of "

// told compares what kubectl was told.
func (s *step) told(t *testing.T, got env.Result, at string) {
	t.Helper()
	if len(s.Denied) == 0 {
		require.Zero(t, got.Code, "%s: %s", at, got.Stderr)
	} else {
		require.Equal(t, 1, got.Code, "%s: %s%s", at, got.Stdout, got.Stderr)
		require.Contains(t, got.Stderr, `admission webhook "validate.overrule.dev" denied the request: `, at)
	}
	for _, code := range s.Denied {
		assert.Contains(t, got.Stderr, code, at)
	}
	var warnings []string
	for line := range strings.Lines(got.Stderr) {
		if warning, ok := strings.CutPrefix(line, "Warning: "); ok && !strings.Contains(warning, reachText) {
			warnings = append(warnings, warning)
		}
	}
	if !assert.Len(t, warnings, len(s.Warned), "%s: %s", at, got.Stderr) {
		return
	}
	for i, part := range s.Warned {
		assert.Contains(t, warnings[i], part, at)
	}
}

// annotated is the state in a policy's annotation.
func (c *kindCase) annotated(t *testing.T, policy string) string {
	t.Helper()
	var o unstructured.Unstructured
	o.SetAPIVersion(c.APIVersion)
	o.SetKind(c.Kind)
	namespace, name, _ := strings.Cut(policy, "/")
	require.NoError(t, admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &o))
	var outcome struct {
		State string `json:"state"`
	}
	annotation := o.GetAnnotations()[api.AnnotationOutcome]
	require.NoError(t, json.Unmarshal([]byte(annotation), &outcome), "%s: %q", policy, annotation)
	return outcome.State
}

// compare compares what `kubectl overrule effective` answers.
func (c *kindCase) compare(t *testing.T, w world, s *step, at string) {
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

// describe is a path in words, without the GatewayClass that all start at.
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

// overrule runs the plugin and reads its answer.
func overrule(t *testing.T, into any, args ...string) {
	t.Helper()
	got := plane.Overrule(append(args, "-o", "json")...)
	require.Zero(t, got.Code, "kubectl overrule %v: %s", args, got.Stderr)
	require.NoError(t, json.Unmarshal([]byte(got.Stdout), into))
}
