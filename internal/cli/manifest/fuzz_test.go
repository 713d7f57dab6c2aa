package manifest

import (
	"strings"
	"testing"
)

// No file brings the reader down, and what it reads makes a view or an error.
func FuzzRead(f *testing.F) {
	for _, text := range []string{
		gatewayAPI + "kind: HTTPRoute\nmetadata: {name: a}\nspec: {rules: [{}]}\n",
		"apiVersion: kuadrant.io/v1\nkind: AuthPolicy\nmetadata: {name: a}\nspec: {targetRef: {}, rules: {authentication: {a: 1}}, overrides: {when: spec.x}}\n",
		crd("A", "true", "Cluster") + "---\napiVersion: example.com/v1\nkind: A\nmetadata: {name: a}\n",
		"apiVersion: v1\nkind: List\nitems: [{kind: NamespaceList, apiVersion: v1, items: [{metadata: {name: a}}]}]\n",
		"a: &a [*a]\n", "a: &a {x: 1}\nb: {<<: *a}\n", "--- # c\n...\n%YAML 1.1\n", "\uFEFF{}", bomb(),
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		set, err := Read([]string{Stdin}, strings.NewReader(text))
		if err != nil && err.Error() == "" {
			t.Fatal("an error that says nothing")
		}
		kinds := NewKinds(nil)
		v, err := set.View(kinds, "default")
		if (v == nil) == (err == nil) {
			t.Fatalf("a view and an error, or neither: %v", err)
		}
		set.Ignored(kinds)
	})
}
