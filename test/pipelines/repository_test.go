//go:build long

package pipelines

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The manifests of the repository: a base with a gateway and an override for all of its
// routes, and two overlays with a route each.
const (
	gateways = `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: infra, name: edge}
spec:
  gatewayClassName: shop
  listeners:
  - {name: http, protocol: HTTP, port: 80, allowedRoutes: {namespaces: {from: All}}}
`
	policies = `# The platform team requires single sign-on.
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {namespace: infra, name: gw-auth}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}
  overrides:
    strategy: merge
    rules:
      authentication:
        sso: {jwt: {issuerUrl: "https://sso.example.com"}}
`
	overrideLine = 11 // of the rule sso in policies

	route = `apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: app, name: shop}
spec:
  parentRefs: [{namespace: infra, name: edge}]
  rules: [{name: all}]
`
	routePolicy = `apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {namespace: app, name: shop-auth}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop}
  rules:
    authentication:
      sso: {jwt: {issuerUrl: "https://login.shop.example.com"}}
`
	overlay = `resources: [../../base, route.yaml]
`
	// brokenOverlay replaces the rule of the override.
	brokenOverlay = overlay + `patches:
- target: {kind: AuthPolicy, name: gw-auth}
  patch: |
    - {op: remove, path: /spec/overrides/rules/authentication/sso}
    - {op: add, path: /spec/overrides/rules/authentication/key, value: {apiKey: {}}}
`
)

// files are the contents of files by path. An empty content removes the file.
type files map[string]string

// base are the files of the first commit.
var base = files{
	"base/kustomization.yaml":             "resources: [gateway.yaml, policies.yaml]\n",
	"base/gateway.yaml":                   gateways,
	"base/policies.yaml":                  policies,
	"overlays/dev/kustomization.yaml":     overlay,
	"overlays/dev/route.yaml":             route,
	"overlays/prod/kustomization.yaml":    overlay,
	"overlays/prod/route.yaml":            route,
	"plain files/it's a \"gateway\".yaml": gateways,
	"plain files/policies.yaml":           policies,
	"plain files/route.yaml":              route,
}

// repository is a Git repository in a temporary folder.
type repository struct {
	t   *testing.T
	dir string
	// programs is a folder of programs, which come before those of the machine.
	programs string
	// comments is the file with the comments of the pull request.
	comments string
}

// newRepository returns a repository with a commit for each set of files.
func newRepository(t *testing.T, commits ...files) *repository {
	t.Helper()
	r := &repository{t, filepath.Join(t.TempDir(), "work tree"), programs(t), filepath.Join(t.TempDir(), "comments.json")}
	r.setComments()
	require.NoError(t, os.MkdirAll(r.dir, 0o755))
	r.git("init", "--quiet", "--initial-branch=main")
	for _, f := range commits {
		r.write(f)
		r.git("add", "--all")
		r.git("commit", "--quiet", "--allow-empty", "--message=change")
	}
	return r
}

func (r *repository) write(f files) {
	r.t.Helper()
	for path, content := range f {
		path = filepath.Join(r.dir, path)
		require.NoError(r.t, os.MkdirAll(filepath.Dir(path), 0o755))
		if content == "" {
			require.NoError(r.t, os.Remove(path))
			continue
		}
		require.NoError(r.t, os.WriteFile(path, []byte(content), 0o600))
	}
}

// git runs a command of git and returns its output.
func (r *repository) git(args ...string) string {
	r.t.Helper()
	got := r.run(r.dir, nil, "git", args...)
	require.Zero(r.t, got.code, "git %q: %s", args, got.stderr)
	return strings.TrimSpace(got.stdout)
}

// sha returns the SHA of a revision.
func (r *repository) sha(revision string) string {
	r.t.Helper()
	return r.git("rev-parse", revision)
}

// named returns a text with the name of its revision, such as "base HEAD~1", as the scripts
// write it.
func (r *repository) named(text string) string {
	r.t.Helper()
	return revision.ReplaceAllStringFunc(text, func(name string) string { return r.sha(name)[:12] })
}

var revision = regexp.MustCompile(`HEAD(~\d)?`)

// shallowClone returns a clone with the last commit only.
func (r *repository) shallowClone() *repository {
	r.t.Helper()
	clone := *r
	clone.dir = filepath.Join(r.t.TempDir(), "clone")
	r.git("clone", "--quiet", "--depth=1", "file://"+r.dir, clone.dir)
	return &clone
}

func (r *repository) setComments(all ...comment) {
	r.t.Helper()
	if all == nil {
		all = []comment{}
	}
	data, err := json.Marshal(all)
	require.NoError(r.t, err)
	require.NoError(r.t, os.WriteFile(r.comments, data, 0o600))
}

func (r *repository) readComments() []comment {
	r.t.Helper()
	out, err := readComments(r.comments)
	require.NoError(r.t, err)
	return out
}

// result is the output of a command.
type result struct {
	stdout, stderr string
	code           int
}

// run runs a command with the programs of the repository first on the PATH. It has no
// variables but those given, and what git needs.
func (r *repository) run(dir string, environ map[string]string, name string, args ...string) result {
	r.t.Helper()
	all := map[string]string{
		"PATH": r.programs + ":/usr/local/bin:/usr/bin:/bin", "HOME": r.t.TempDir(), "TMPDIR": r.t.TempDir(), "LC_ALL": "C.UTF-8",
		"GIT_CONFIG_NOSYSTEM": "1", commentsVariable: r.comments,
		"GIT_AUTHOR_NAME": "dev", "GIT_AUTHOR_EMAIL": "dev@example.com", "GIT_COMMITTER_NAME": "dev", "GIT_COMMITTER_EMAIL": "dev@example.com",
	}
	maps.Copy(all, environ)
	cmd := exec.CommandContext(r.t.Context(), name, args...)
	cmd.Dir = dir
	for name, value := range all {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(r.t, err)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// requireUnchanged fails if something was left behind in the repository.
func (r *repository) requireUnchanged() {
	r.t.Helper()
	require.Empty(r.t, r.git("status", "--porcelain"))
	require.Len(r.t, strings.Split(r.git("worktree", "list"), "\n"), 1)
}
