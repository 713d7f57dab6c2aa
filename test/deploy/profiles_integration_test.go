//go:build integration

package deploy_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/tables"
)

// profile returns a PolicyProfile of Paint.example.com, with some fields of its
// spec replaced or added.
func profile(t *testing.T, fields string) string {
	t.Helper()
	spec := map[string]any{
		"group": "example.com", "kind": "Paint", "class": "inherited", "targets": map[string]any{"fields": []string{"targetRefs"}},
	}
	require.NoError(t, yaml.Unmarshal([]byte(fields), &spec))
	return marshal(t, map[string]any{
		"apiVersion": "overrule.dev/v1alpha1", "kind": "PolicyProfile", "metadata": map[string]any{"name": "paint"}, "spec": spec,
	})
}

// holdsProfilesToTheirRules applies profiles to a cluster that has the CRD.
func validatesProfiles(t *testing.T, cluster *env.Env) {
	t.Helper()
	for sentence, c := range tables.Read[map[string]struct{ Fields, Want string }](t, "testdata/profiles.yaml") {
		t.Run(sentence, func(t *testing.T) {
			got := cluster.Apply(profile(t, c.Fields), "--dry-run=server", "--validate=strict")
			if c.Want == "" {
				quiet(t, got)
				return
			}
			assert.NotZero(t, got.Code, got.Stdout)
			assert.Contains(t, got.Stderr, c.Want)
		})
	}
}
