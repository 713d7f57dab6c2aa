//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/outputschema"
)

// developerRights are what an administrator grants to a developer in one namespace. The role
// view has overrule-reviews on a cluster where the controller manager aggregates roles.
const developerRights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {namespace: APP, name: developers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: overrule-reviews}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: USER}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {namespace: APP, name: policies}
rules:
- {apiGroups: [gateway.networking.k8s.io], resources: [httproutes], verbs: [get, list, create, update, patch, delete]}
- {apiGroups: [kuadrant.io], resources: [authpolicies, ratelimitpolicies], verbs: [get, list, create, update, patch, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {namespace: APP, name: policies}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: policies}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: USER}]
`

// developer returns a user with rights in the application's namespace alone.
func (g testNamespaces) developer(t *testing.T) *env.User {
	t.Helper()
	who := g.c.MustAddUser(t, g.app+"-developer", nil)
	succeed(t, g.apply(strings.ReplaceAll(developerRights, "USER", who.Name)))
	g.awaitMay(t, who, "create", "effectivepolicyreviews.overrule.dev")
	g.awaitMay(t, who, "delete", "ratelimitpolicies.kuadrant.io")
	return who
}

// awaitMay waits until the API server has observed a right of a user.
func (g testNamespaces) awaitMay(t *testing.T, who *env.User, verb, resource string) {
	t.Helper()
	soon(t, func() bool { return who.Kubectl("auth", "can-i", verb, resource, "-n", g.app).Code == 0 }, "no right to "+verb+" "+resource)
}

// hiddenAuth and ownAuth are the policies of the gateway and of the route.
const (
	hiddenAuth = `
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {namespace: INFRA, name: gateway}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}
  overrides: {strategy: merge, rules: {authentication: {sso: {issuer: s3cret}}}}
`
	ownAuth = `
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {namespace: APP, name: route}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: toystore}
  rules: {authentication: {sso: {issuer: mine}, key: {header: x}}}
`
)

// reviewOf returns the manifest of a review in the application's namespace.
func reviewOf(kind, name, rest string) string {
	return fmt.Sprintf(`
apiVersion: overrule.dev/v1alpha1
kind: EffectivePolicyReview
metadata: {namespace: APP, name: question}
spec:
  object: {group: gateway.networking.k8s.io, kind: %s, name: %s}
%s`, kind, name, rest)
}

// askReview creates a review in a dry run, and decodes the answer.
func (g testNamespaces) askReview(t *testing.T, who *env.User, manifest string, args ...string) api.ReviewStatus {
	t.Helper()
	got := who.KubectlWith(g.expand(manifest), append([]string{"create", "--dry-run=server", "-o", "yaml", "-f", "-"}, args...)...)
	succeed(t, got)
	var answer struct{ Status *api.ReviewStatus }
	data, err := yaml.YAMLToJSON([]byte(got.Stdout))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &answer))
	require.NotNil(t, answer.Status, got.Stdout)
	return *answer.Status
}

// refuseReview requires that a review is denied with a message.
func (g testNamespaces) refuseReview(t *testing.T, who *env.User, manifest string, says ...string) {
	t.Helper()
	got := who.KubectlWith(g.expand(manifest), "create", "--dry-run=server", "-o", "yaml", "-f", "-")
	require.Equal(t, 1, got.Code, got.Stdout)
	for _, part := range says {
		assert.Contains(t, got.Stderr, g.expand(part))
	}
}

// TestReviews asks what holds with the rights of a developer in one namespace.
func TestReviews(t *testing.T) {
	c := shared(t)
	g := c.prepare(t, "reviews")
	s := c.start(t)
	succeed(t, g.apply(hiddenAuth))
	succeed(t, g.apply(ownAuth))
	who := g.developer(t)

	t.Run("the answer has no value of a policy that the developer may not get", func(t *testing.T) {
		got := g.askReview(t, who, reviewOf("HTTPRoute", "toystore", ""))
		require.Len(t, got.Items, 2, "one for each rule of the route")
		assert.Equal(t, map[string]any{"rules": map[string]any{"authentication": map[string]any{"key": map[string]any{"header": "x"}}}}, got.Items[0].Spec)
		gateway := api.Ref{Group: "kuadrant.io", Kind: "AuthPolicy", Namespace: g.infra, Name: "gateway"}
		assert.Contains(t, got.Items[0].Rules, api.RuleOrigin{Rule: "rules.authentication.sso", From: gateway, Block: "overrides", Redacted: true})
		require.Len(t, got.Explanations, 2)
		text, err := json.Marshal(got)
		require.NoError(t, err)
		assert.NotContains(t, string(text), "s3cret")
		assert.Contains(t, string(text), "mine")
	})
	t.Run("a user who may get all policies is shown all values", func(t *testing.T) {
		got := g.askReview(t, c.User, reviewOf("HTTPRoute", "toystore", ""))
		text, err := json.Marshal(got)
		require.NoError(t, err)
		assert.Contains(t, string(text), "s3cret")
		assert.False(t, got.Redacted)
	})
	t.Run("an impersonated user is that user, and a forged answer is replaced", func(t *testing.T) {
		forged := reviewOf("HTTPRoute", "toystore", "status: {message: all is fine}\n")
		assert.Equal(t, g.askReview(t, who, reviewOf("HTTPRoute", "toystore", "")), g.askReview(t, c.User, forged, "--as", who.Name))
	})
	t.Run("questions that are wrong", func(t *testing.T) { g.refuseWrongReviews(t, who) })
	t.Run("a review is not stored", func(t *testing.T) {
		for _, user := range []*env.User{who, c.User} {
			got := user.KubectlWith(g.expand(reviewOf("HTTPRoute", "toystore", "")), "create", "-f", "-")
			require.Equal(t, 1, got.Code)
			assert.Contains(t, got.Stderr, "kubectl create --dry-run=server -o yaml -f FILE")
		}
		assert.Empty(t, c.Kubectl("get", "effectivepolicyreviews", "-A", "-o", "name").Stdout)
	})
	t.Run("the plugin asks by itself", func(t *testing.T) { g.asksByPlugin(t, who) })
	t.Run("the plugin checks by a dry run", func(t *testing.T) { g.checksByDryRun(t, who) })
	t.Run("the page asks, too", func(t *testing.T) { g.asksByPage(t, who) })
	t.Run("nothing of it is in logs, metrics and events", func(t *testing.T) {
		assert.NotContains(t, s.Log(), "s3cret")
		assert.Contains(t, s.Log(), `"webhook":"review"`)
		assert.NotContains(t, metricsPage(t, s), "s3cret")
		assert.NotContains(t, c.Kubectl("get", "events", "-A", "-o", "json").Stdout, "s3cret")
	})
	require.NoError(t, s.Stop())
	t.Run("without a server", func(t *testing.T) { g.refuseReviewsWithoutServer(t, who) })
}

// refuseWrongReviews asks what cannot be answered. The webhook package has every
// such question; these need the API server's authorization and schema.
func (g testNamespaces) refuseWrongReviews(t *testing.T, who *env.User) {
	absent := "HTTPRoute APP/absent not found, or you are not allowed to get it"
	g.refuseReview(t, who, reviewOf("HTTPRoute", "absent", ""), absent)
	succeed(t, g.apply(strings.ReplaceAll(toystore, "name: toystore", "name: other")))
	limited := g.c.MustAddUser(t, g.app+"-asker", nil)
	succeed(t, g.kubectl("create", "rolebinding", "asker", "--clusterrole=overrule-reviews", "--user="+limited.Name))
	g.awaitMay(t, limited, "create", "effectivepolicyreviews.overrule.dev")
	g.refuseReview(t, limited, reviewOf("HTTPRoute", "other", ""), "HTTPRoute APP/other not found, or you are not allowed to get it")
	g.refuseReview(t, limited, reviewOf("HTTPRoute", "absent", ""), absent)
	g.refuseReview(t, who, strings.ReplaceAll(reviewOf("Gateway", "edge", ""), "namespace: APP", "namespace: INFRA"), "is forbidden")
	g.refuseReview(t, who, reviewOf("HTTPRoute", "toystore", "  question: what holds\n"), `unknown field "spec.question"`)

	// A server-side apply of an object that does not exist creates it. It needs the right to patch.
	got := g.c.User.KubectlWith(g.expand(reviewOf("HTTPRoute", "toystore", "")), "apply", "--server-side", "--dry-run=server", "-o", "yaml", "-f", "-")
	succeed(t, got)
	assert.Contains(t, got.Stdout, "explanations:")
	got = g.kubectl("get", "epr", "question")
	assert.Equal(t, 1, got.Code)
	assert.Contains(t, got.Stderr, "NotFound")
}

// asksByPlugin runs the commands that ask Overrule with the rights of a developer.
func (g testNamespaces) asksByPlugin(t *testing.T, who *env.User) {
	ask := func(args ...string) env.Result {
		got := who.Overrule(append(args, "-n", g.app)...)
		assert.NotContains(t, got.Stdout+got.Stderr, "s3cret", args)
		return got
	}
	for _, c := range []struct{ command, object, kind, says string }{
		{"effective", "httproute/toystore", api.KindEffectivePolicyList, "(redacted)"},
		{"explain", "httproute/toystore", api.KindExplanationList, "rules.authentication.sso = (redacted)"},
		{"explain", "authpolicy/route", api.KindExplanationList, "lost rules.authentication.sso to the overrides of AuthPolicy INFRA/gateway"},
		{"outcome", "authpolicy/route", api.KindOutcomeList, "lost rules.authentication.sso to AuthPolicy INFRA/gateway on 2 paths"},
		{"reach", "authpolicy/route", api.KindReachList, "rules.authentication.key"},
	} {
		got := ask(c.command, c.object)
		require.Zero(t, got.Code, "%s: %s", c.command, got.Stderr)
		assert.Contains(t, got.Stdout, g.expand(c.says), c.command)
		assert.Contains(t, got.Stderr, g.expand("note: you are not allowed to list the objects of all namespaces; asked Overrule in namespace APP"))
		got = ask(c.command, c.object, "-o", "json")
		require.NoError(t, outputschema.Validate(t, c.kind, got.Stdout), got.Stdout)
	}
	assert.Contains(t, ask("reach", "--affecting", "httproute/toystore").Stdout, "gateway")
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"effective", "httproute/nothing"}, 1, "error: HTTPRoute APP/nothing not found, or you are not allowed to get it"},
		{[]string{"outcome", "httproute/toystore"}, 2, "is not a policy; use kubectl overrule effective"},
		{[]string{"reach", "--affecting", "authpolicy/route"}, 2, "is a policy; omit --affecting"},
		{[]string{"effective", "--without", "httproute/toystore"}, 2, "--without"},
		{[]string{"effective"}, 2, "cannot list"},
	} {
		got := ask(c.args...)
		assert.Equal(t, c.code, got.Code, c.args)
		assert.Contains(t, got.Stderr, g.expand(c.says), c.args)
	}
}

// checksByDryRun checks changes with the rights of a developer.
func (g testNamespaces) checksByDryRun(t *testing.T, who *env.User) {
	check := func(manifest string, args ...string) (env.Result, api.VerdictList) {
		got := who.OverruleWith(g.expand(manifest), append(args, "-n", g.app, "-f", "-", "-o", "json")...)
		assert.Contains(t, got.Stderr, "note: ")
		require.NoError(t, outputschema.Validate(t, api.KindVerdictList, got.Stdout), got.Stdout+got.Stderr)
		var list api.VerdictList
		require.NoError(t, json.Unmarshal([]byte(got.Stdout), &list))
		require.Len(t, list.Items, 1)
		return got, list
	}
	got, list := check(strings.ReplaceAll(ownAuth, "header: x", "header: y"), "check")
	assert.Zero(t, got.Code, got.Stderr)
	assert.True(t, list.Items[0].Allowed)
	assert.Equal(t, "UPDATE", list.Items[0].Operation)

	evading := strings.ReplaceAll(ownAuth, "  rules: {authentication: {sso: {issuer: mine}, key: {header: x}}}", "  unset: [rules.authentication.sso]\n  rules: {authorization: {b: {c: 1}}}")
	got, list = check(evading, "check")
	assert.Equal(t, 1, got.Code, got.Stderr)
	require.NotEmpty(t, list.Items[0].Reasons)
	assert.Equal(t, api.ReasonUnsetOverride, list.Items[0].Reasons[0].Code)
	got, _ = check(evading, "diff")
	assert.Zero(t, got.Code, "diff denies nothing")
	invalid := strings.ReplaceAll(ownAuth, "targetRef: {", "targetRef: {sectionName: [s3cret], ")
	require.NotEqual(t, ownAuth, invalid)
	got, list = check(invalid, "check", "--redact-values")
	assert.Equal(t, 1, got.Code, got.Stderr)
	require.NotEmpty(t, list.Items[0].Reasons)
	assert.Equal(t, api.ReasonSchemaInvalid, list.Items[0].Reasons[0].Code, "the API server rejects it")
	assert.NotContains(t, got.Stdout+got.Stderr, "s3cret")
	assert.Equal(t, "mine", g.get(t, "authpolicy/route", ".spec.rules.authentication.sso.issuer"), "nothing is stored")
}

// asksByPage opens the page of the plugin with the rights of a developer.
func (g testNamespaces) asksByPage(t *testing.T, who *env.User) {
	root, err := env.Repository(t.Context())
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	cmd := exec.CommandContext(ctx, filepath.Join(root, "bin", "kubectl-overrule"), "ui", "--no-browser", "-n", g.app)
	cmd.Env = who.Environ()
	said, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait() // it was stopped
	})
	var link string
	lines := bufio.NewScanner(said)
	for link == "" && lines.Scan() {
		if rest, ok := strings.CutPrefix(lines.Text(), "Open "); ok {
			link, _, _ = strings.Cut(rest, " ")
		}
	}
	require.NotEmpty(t, link)
	page, err := url.Parse(link)
	require.NoError(t, err)
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	browser := &http.Client{Jar: jar}
	get := func(at string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
		require.NoError(t, err)
		response, err := browser.Do(r)
		require.NoError(t, err)
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		assert.NotContains(t, string(body), "s3cret", at)
		return response.StatusCode, string(body)
	}
	status, _ := get(link)
	require.Equal(t, http.StatusOK, status)
	of := func(path, name string) string {
		return "http://" + page.Host + "/api/" + path + "?" + url.Values{"kind": {"HTTPRoute"}, "namespace": {g.app}, "name": {name}}.Encode()
	}
	status, body := get(of("object", "toystore"))
	require.Equal(t, http.StatusOK, status, body)
	assert.Contains(t, body, `"redacted":true`)
	assert.Contains(t, body, `"total":2`)
	status, body = get(of("picture", "toystore"))
	require.Equal(t, http.StatusOK, status, body)
	assert.Contains(t, body, "<svg")
	status, body = get(of("object", "nothing"))
	assert.Equal(t, http.StatusNotFound, status, body)
	status, body = get("http://" + page.Host + "/api/violations")
	assert.Equal(t, http.StatusUnprocessableEntity, status, body)
	status, body = get("http://" + page.Host + "/api/state")
	assert.Equal(t, http.StatusOK, status, body)
	assert.Contains(t, body, "you are not allowed to list")
}

// refuseReviewsWithoutServer asks while no server answers, and without webhooks.
func (g testNamespaces) refuseReviewsWithoutServer(t *testing.T, who *env.User) {
	forged := reviewOf("HTTPRoute", "toystore", "status: {message: all is fine}\n")
	g.refuseReview(t, who, forged, `failed calling webhook "review.overrule.dev"`)
	silent := who.Overrule("effective", "-n", g.app, "httproute/toystore")
	assert.Equal(t, 2, silent.Code)
	assert.Contains(t, silent.Stderr, "overrule does not run")
	g.c.removeWebhooks(t)
	soon(t, func() bool {
		got := who.KubectlWith(g.expand(reviewOf("HTTPRoute", "toystore", "")), "create", "--dry-run=server", "-f", "-")
		return got.Code == 1 && strings.Contains(got.Stderr, "Overrule did not answer")
	}, "a dry run without an answer succeeds")
	got := who.KubectlWith(g.expand(forged), "create", "-f", "-")
	require.Equal(t, 1, got.Code)
	assert.Contains(t, got.Stderr, "kubectl create --dry-run=server -o yaml -f FILE")
	assert.Empty(t, g.c.Kubectl("get", "effectivepolicyreviews", "-A", "-o", "name").Stdout)
}
