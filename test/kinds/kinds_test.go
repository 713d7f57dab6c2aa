//go:build e2e

package kinds

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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

// TestKinds applies policies of each kind that has a built-in profile; the
// results are those of the kind's row in docs/policy-kinds.md. With -short it
// runs every fifth case.
func TestKinds(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	n := 0
	for _, file := range files {
		for _, c := range load(t, file) {
			if n++; testing.Short() && n%5 != 0 {
				continue
			}
			t.Run(c.name(), func(t *testing.T) {
				t.Parallel()
				c.run(t)
			})
		}
	}
}

// Every built-in profile has a case, and a row in the docs.
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
	var want []string
	rows := map[string]int{}
	for _, kind := range policykind.BuiltinKinds() {
		want = append(want, kind.Ref().String())
		rows[kind.Kind]++
	}
	slices.Sort(got)
	assert.ElementsMatch(t, want, slices.Compact(got))
	documented := documentedKinds(t)
	for kind, n := range rows {
		assert.Equal(t, n, documented[kind], "rows of %s", kind)
	}
}

var firstCell = regexp.MustCompile(`(?m)^\| ([^|]+) \| `)

// documentedKinds returns how many rows of the docs' tables of built-in kinds are of each
// kind. A row may be of several kinds.
func documentedKinds(t *testing.T) map[string]int {
	t.Helper()
	page, err := os.ReadFile("../../docs/policy-kinds.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(page), "\n## The built-in kinds\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	out := map[string]int{}
	for _, m := range firstCell.FindAllStringSubmatch(section, -1) {
		for kind := range strings.SplitSeq(m[1], ", ") {
			kind, _, _ = strings.Cut(kind, " (")
			out[kind]++
		}
	}
	return out
}

func (c *kindCase) run(t *testing.T) {
	w := namespacesOf(c.name())
	w.create(t)
	if len(c.Given) > 0 {
		apply(t, documents(t, c.Given))
	}
	for i := range c.Steps {
		c.step(t, w, i)
	}
}

// documents returns objects as the documents of one manifest.
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

// apply applies objects that are not policies.
func apply(t *testing.T, manifest string) {
	t.Helper()
	got := plane.Apply(manifest, "--server-side")
	require.Zero(t, got.Code, got.Stderr)
}

func (c *kindCase) step(t *testing.T, w namespaces, i int) {
	t.Helper()
	s := &c.Steps[i]
	at := fmt.Sprintf("step %d: %s%s", i+1, s.Policy, s.Delete)
	switch {
	case s.Delete != "":
		namespace, name, _ := strings.Cut(s.Delete, "/")
		s.checkOutput(t, plane.Kubectl("delete", "-n", namespace, c.resource(), name), at)
	case s.Policy != "":
		s.checkOutput(t, plane.Apply(c.manifest(t, s)), at)
	case s.Objects != nil:
		apply(t, documents(t, s.Objects))
	case s.Remove != nil:
		got := plane.KubectlWith(documents(t, s.Remove), "delete", "-f", "-")
		require.Zero(t, got.Code, "%s: %s", at, got.Stderr)
	}
	if s.State != "" { // refreshed where the cache had not observed the previous step yet
		soon(t, at+": the state in the annotation is not "+s.State, func() bool { return c.annotated(t, s.Policy) == s.State })
	}
	if s.Effective != nil || s.Outcomes != nil {
		c.compare(t, w, s, at)
	}
}

// resource returns the kind as kubectl accepts it.
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

// reach is the warnings about the extent of a write, which are not compared: that of a mesh's
// policy includes the waypoints and gateways of other cases.
var reach = regexp.MustCompile(`have no effect at waypoint |are not read on |changes the effective \w+ on \d+ paths? in \d+ namespace|(loses?|replaces) .* of .* on \d+ paths?|gets? .* of |requests that move `)

// checkOutput compares kubectl's output.
func (s *step) checkOutput(t *testing.T, got env.Result, at string) {
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
		if warning, ok := strings.CutPrefix(line, "Warning: "); ok && !reach.MatchString(warning) {
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

// annotated returns the state in a policy's annotation.
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
