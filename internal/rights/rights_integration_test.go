//go:build integration

package rights_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/rights"
	"overrule.dev/overrule/test/env"
)

func authPolicy(namespace, name string) api.Ref {
	return api.Ref{Group: "kuadrant.io", Kind: "AuthPolicy", Namespace: namespace, Name: name}
}

type reviewCase struct {
	user   authenticationv1.UserInfo
	policy api.Ref
	want   bool
}

// reviewCases are about the roles of testdata/roles.yaml.
var reviewCases = map[string]reviewCase{
	"a user without any role may not":      {named("norole"), authPolicy("infra", "gw-policy"), false},
	"who may edit policies may not":        {named("editor"), authPolicy("infra", "gw-policy"), false},
	"a user with the verb may":             {named("overrider"), authPolicy("infra", "gw-policy"), true},
	"but not in another namespace":         {named("overrider"), authPolicy("app", "gw-policy"), false},
	"nor for another kind":                 {named("overrider"), api.Ref{Group: "kuadrant.io", Kind: "RateLimitPolicy", Namespace: "infra", Name: "gw-policy"}, false},
	"the verb on a name is for that one":   {named("named"), authPolicy("infra", "gw-policy"), true},
	"and for no other":                     {named("named"), authPolicy("infra", "other"), false},
	"nor for all of them":                  {named("named"), authPolicy("infra", ""), false},
	"every verb has this one among them":   {named("starred"), authPolicy("infra", "gw-policy"), true},
	"a cluster role counts everywhere":     {named("everywhere"), authPolicy("app", "gw-policy"), true},
	"and for what has no namespace":        {named("everywhere"), authPolicy("", "all"), true},
	"a role of a namespace does not there": {named("starred"), authPolicy("", "all"), false},
	"a group brings it":                    {named("member", "devs", "platform"), authPolicy("infra", "gw-policy"), true},
	"another group does not":               {named("member", "devs"), authPolicy("infra", "gw-policy"), false},
	"masters may all":                      {named("root", "system:masters"), authPolicy("infra", "gw-policy"), true},
}

func named(user string, groups ...string) authenticationv1.UserInfo {
	return authenticationv1.UserInfo{Username: user, Groups: groups}
}

func TestRightsOnAnAPIServer(t *testing.T) {
	e := env.Start(t)
	roles, err := os.ReadFile("testdata/roles.yaml")
	require.NoError(t, err)
	got := e.Apply(string(roles))
	require.Zero(t, got.Code, got.Stderr)
	asker := e.MustAddUser(t, "asker", nil, rbacv1.PolicyRule{
		APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"},
	})
	reviewer := rights.New(client(t, asker.Config).AuthorizationV1(), nil)
	for name, test := range reviewCases {
		t.Run(name, func(t *testing.T) {
			allowed, err := reviewer.MayOverride(t.Context(), &test.user, test.policy)
			require.NoError(t, err)
			assert.Equal(t, test.want, allowed)
			assertKubectl(t, e, reviewer.Check(test.policy), test)

			config := rest.CopyConfig(e.Config)
			config.Impersonate = rest.ImpersonationConfig{UserName: test.user.Username, Groups: test.user.Groups}
			allowed, err = rights.Self(client(t, config).AuthorizationV1(), nil).MayOverride(t.Context(), nil, test.policy)
			require.NoError(t, err)
			assert.Equal(t, test.want, allowed, "reviewed by the user")
		})
	}
}

// assertKubectl runs, as the user, the command that Check returns.
func assertKubectl(t *testing.T, e *env.Env, command string, q reviewCase) {
	t.Helper()
	args := append(strings.Fields(command)[1:], "--as", q.user.Username)
	for _, g := range q.user.Groups {
		args = append(args, "--as-group", g)
	}
	got := e.Kubectl(args...)
	if q.want {
		assert.Equal(t, "yes\n", got.Stdout, "%s: %s", command, got.Stderr)
		return
	}
	assert.Equal(t, "no", strings.TrimSpace(got.Stdout), "%s: %s", command, got.Stderr)
	assert.Equal(t, 1, got.Code)
}

func client(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	c, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return c
}
