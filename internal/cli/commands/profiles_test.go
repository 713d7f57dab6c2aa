package commands

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cache"
	"overrule.dev/overrule/internal/policykind"
)

func listProfiles(t *testing.T, args ...string) []string {
	t.Helper()
	got := run(t, "", append([]string{"profiles", "-o", "json"}, args...)...)
	require.Equal(t, exitOK, got.code, got.stderr)
	var out []string
	for _, p := range decode[api.ProfileList](t, got.stdout).Items {
		out = append(out, p.PolicyKind.Kind+" "+p.Source)
	}
	return out
}

// By default the kinds that are present are listed.
func TestProfilesFilter(t *testing.T) {
	builtin := policykind.BuiltinKinds()
	file := "testdata/profiles.yaml"
	assert.Equal(t, []string{"GuessedPolicy label", "OwnPolicy cluster", "AuthPolicy built-in", "RateLimitPolicy cluster"}, listProfiles(t, "-f", file))
	assert.Len(t, listProfiles(t, "-f", file, "--all"), len(builtin)+2)
	assert.Equal(t, []string{"BackendTLSPolicy built-in", "BackendTLSPolicy built-in"}, listProfiles(t, "-f", file, "backendtlspolicies"), "of two groups")
	assert.Equal(t, []string{"GuessedPolicy label"}, listProfiles(t, "-f", file, "gp"))
	assert.Equal(t, []string{"RateLimitPolicy built-in", "RateLimitPolicy cluster", "RateLimitPolicy built-in"}, listProfiles(t, "-f", file, "RateLimitPolicy"))
	assert.Equal(t, []string{"RateLimitPolicy cluster"}, listProfiles(t, "-f", file, "RateLimitPolicy.kuadrant.io"))
	got := run(t, "", "profiles", "-f", file)
	assert.Contains(t, got.stderr, "--all")
	assert.NotContains(t, run(t, "", "profiles", "--all", "-f", file).stderr, "--all")
}

// A profile that is exported and applied is equal to the one in effect before.
func TestExportRoundTrip(t *testing.T) {
	builtin := policykind.BuiltinKinds()
	for _, k := range builtin {
		got := run(t, "", "profiles", "-f", "testdata/profiles.yaml", k.Ref().String(), "--export")
		require.Equal(t, exitOK, got.code, got.stderr)
		var p api.PolicyProfile
		require.NoError(t, yaml.UnmarshalStrict([]byte(got.stdout), &p), got.stdout)
		back, err := policykind.Compile(p.Spec, policykind.Cluster)
		require.NoError(t, err, got.stdout)
		if k.Name == "" && k.Kind != "RateLimitPolicy" { // the file has another of Kuadrant's
			assert.Equal(t, k.PolicyProfileSpec, back.PolicyProfileSpec)
		}
		file := write(t, "profile.yaml", got.stdout)
		assert.Contains(t, listProfiles(t, "-f", file), k.Kind+" cluster", "it is a manifest to apply")
	}
	for kind, name := range map[string]string{"GuessedPolicy": "guessedpolicies.example.com", "OwnPolicy": "own", "AuthPolicy": "authpolicies.kuadrant.io"} {
		got := run(t, "", "profiles", "-f", "testdata/profiles.yaml", kind, "--export", "-o", "json")
		require.Equal(t, exitOK, got.code, got.stderr)
		assert.Equal(t, name, decode[api.PolicyProfile](t, got.stdout).Name)
	}
}

// clusterProfiles runs a command on a cluster that has one kind and a refused
// profile.
func clusterProfiles(t *testing.T, err error, args ...string) result {
	t.Helper()
	a := &app{reader: reader{connection: connection{listProfiles: func(_ context.Context, config *rest.Config) ([]api.ProfileInForce, []cache.Problem, error) {
		assert.Equal(t, "https://127.0.0.1:1", config.Host)
		spec := func(group, kind string) api.PolicyProfileSpec {
			return api.PolicyProfileSpec{
				Group: group, Kind: kind, Class: api.Direct, SameTarget: api.None,
				Levels: []api.LevelName{api.LevelRoute}, Targets: api.ProfileTargets{Fields: []string{"targetRef"}},
			}
		}
		return []api.ProfileInForce{
			{PolicyKind: api.PolicyKind{Group: "a.example.com", Kind: "APolicy"}, Source: "built-in", Installed: true, Spec: spec("a.example.com", "APolicy")},
			{PolicyKind: api.PolicyKind{Group: "b.example.com", Kind: "BPolicy"}, Source: "built-in", Spec: spec("b.example.com", "BPolicy")},
			{
				PolicyKind: api.PolicyKind{Group: "c.example.com", Kind: "CPolicy"}, Source: "built-in", Spec: spec("c.example.com", "CPolicy"),
				Refused: []api.RefusedProfile{{Name: "mine", Reason: api.Invalid, Message: "kind is required"}},
			},
		}, []cache.Problem{{Resource: "policyprofiles", Err: errors.New("forbidden")}}, err
	}}}}
	return a.exec(t, "", append(args, "--kubeconfig", write(t, "config", kubeconfig))...)
}

func TestProfilesOnCluster(t *testing.T) {
	got := clusterProfiles(t, nil, "profiles")
	require.Equal(t, exitOK, got.code, got.stderr)
	assert.Contains(t, got.stderr, "warning: read policyprofiles: forbidden\n1 more ")
	goldenStderr(t, got)
	assert.Contains(t, got.stdout, "APolicy.a.example.com   direct   built-in   yes         Route     atomic     none")
	assert.Contains(t, got.stdout, "PolicyProfile mine is Invalid: kind is required")
	assert.NotContains(t, got.stdout, "BPolicy")
	got = clusterProfiles(t, nil, "profiles", "bpolicies", "--export")
	assert.Contains(t, got.stdout, "name: bpolicies.b.example.com\n")
	requireSchema(t, api.KindProfileList, clusterProfiles(t, nil, "profiles", "--all", "-o", "json"))
	got = clusterProfiles(t, nil, "profiles", "-o", "tree")
	assert.Contains(t, got.stdout, "└─ PolicyProfile mine is Invalid: kind is required\n")
}

func TestProfilesErrors(t *testing.T) {
	file := "testdata/profiles.yaml"
	assertErrors(t, []string{"profiles"}, map[string]errorCase{
		"a kind without a profile": {[]string{"-f", file, "PodPolicy"}, 1, `unknown kind "PodPolicy": profile not found, and no CustomResourceDefinition has the label gateway.networking.k8s.io/policy; create a PolicyProfile`},
		"two arguments":            {[]string{"a", "b"}, 2, "usage: kubectl overrule profiles [KIND]"},
		"no kind to export":        {[]string{"-f", file, "--export"}, 2, "invalid --export: requires exactly one kind"},
		"two kinds to export":      {[]string{"-f", file, "--export", "ratelimitpolicy"}, 2, "KIND.GROUP"},
		"a format":                 {[]string{"-o", "x"}, 2, `invalid value "x" for --output`},
		"a file that is not there": {[]string{"-f", "nowhere"}, 2, "nowhere: file does not exist"},
		"no kubeconfig":            {[]string{"--kubeconfig", "nowhere"}, 2, "read the kubeconfig"},
	})
	got := clusterProfiles(t, errors.New("gone"), "profiles")
	assert.Equal(t, exitError, got.code)
	assert.Contains(t, got.stderr, "read the cluster: gone; or specify manifests with -f or --against")
}

// Of two profiles for one kind, the older one takes effect, else the first by name,
// in any order of the files.
func TestRefusedProfileIsReported(t *testing.T) {
	file := "testdata/profiles.yaml"
	for _, args := range [][]string{{"effective"}, {"outcome"}, {"profiles"}} {
		got := run(t, "", append(args, "-f", file)...)
		assert.Contains(t, got.stderr, "warning: PolicyProfile limits-too-late ")
		assert.Contains(t, got.stderr, "PolicyProfile limits, ")
		goldenStderr(t, got)
	}
}

func TestInvalidProfilePosition(t *testing.T) {
	head := "# a comment\napiVersion: overrule.dev/v1alpha1\nkind: PolicyProfile\n"
	for name, c := range map[string]struct{ text, want string }{
		"a value of another type": {"metadata: {name: a}\nspec: {group: a.b, kind: A, class: direct, targets: {fields: targetRef}}\n", "PolicyProfile a is invalid"},
		"an unknown class":        {"metadata: {name: a}\nspec: {group: a.b, kind: A, class: odd, targets: {fields: [targetRef]}}\n", `PolicyProfile a is invalid: `},
		"a kind of Kubernetes":    {"metadata: {name: a}\nspec: {group: '', kind: Pod, class: direct, targets: {fields: [targetRef]}}\n", "PolicyProfile a is invalid: "},
		"no name":                 {"spec: {}\n", "PolicyProfile: metadata.name is required"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, args := range [][]string{{"effective", "-f", "-"}, {"diff", "-f", contract, "--against", "-"}} {
				got := run(t, head+c.text, args...)
				assert.Equal(t, exitError, got.code)
				assert.Contains(t, got.stderr, "standard input:2 (document 1): ")
				assert.Contains(t, got.stderr, c.want)
				assert.Empty(t, got.stdout)
			}
		})
	}
}

func TestExportBuiltinProfileWithoutCluster(t *testing.T) {
	down := errors.New("no cluster")
	got := clusterProfiles(t, down, "profiles", "AuthPolicy", "--export")
	require.Equal(t, exitOK, got.code, got.stderr)
	assert.Contains(t, got.stdout, "name: authpolicies.kuadrant.io\n")
	assert.Contains(t, got.stderr, "warning: cannot read the cluster, exporting the built-in profile")
	got = clusterProfiles(t, down, "profiles", "NoSuchPolicy", "--export")
	assert.NotEqual(t, exitOK, got.code)
	assert.Contains(t, got.stderr, "no cluster")
}
