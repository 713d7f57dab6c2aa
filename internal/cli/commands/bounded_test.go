package commands

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
)

const lone = "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n"

func TestErrorsOfManifestsHaveAnEnd(t *testing.T) {
	for n, more := range map[int]string{21: "", 61: "and 40 more"} {
		got := run(t, strings.Repeat(lone+"---\n", n), "outcome", "-f", "-")
		assert.Equal(t, exitUnusable, got.code)
		assert.Equal(t, 20, strings.Count(got.stderr, "duplicate object"))
		assert.Equal(t, more != "", strings.Contains(got.stderr, "more"))
		assert.Contains(t, got.stderr, more)
	}
}

func TestNoPoliciesAreSaidToBeNone(t *testing.T) {
	got := run(t, lone, "outcome", "-f", "-")
	assert.Equal(t, exitFound, got.code)
	assert.Equal(t, "no policies found\n", got.stderr)
	assert.Empty(t, got.stdout)
	got = run(t, lone, "outcome", "-f", "-", "-o", "json")
	assert.Empty(t, decode[api.OutcomeList](t, got.stdout).Items)
}

func TestExportOfABuiltinNeedsNoCluster(t *testing.T) {
	down := errors.New("no cluster")
	got := clusterProfiles(t, down, "profiles", "AuthPolicy", "--export")
	require.Equal(t, exitFound, got.code, got.stderr)
	assert.Contains(t, got.stdout, "name: authpolicies.kuadrant.io\n")
	assert.Contains(t, got.stderr, "warning: the cluster cannot be read, so this is the built-in profile")
	got = clusterProfiles(t, down, "profiles", "NoSuchPolicy", "--export")
	assert.NotEqual(t, exitFound, got.code)
	assert.Contains(t, got.stderr, "no cluster")
}
