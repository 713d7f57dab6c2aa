//go:build long

package pipelines

import (
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// findings returns the annotations of a broken override and of its blast radius.
func findings(level, file string, broken int) []annotation {
	return []annotation{{level, file, strconv.Itoa(broken), "OverrideRemoved: AuthPolicy infra/gw-auth"}}
}

// patched are the annotations of brokenOverlay: the file of the policy has the rule that the
// patch removes, and not the one that it adds.
func patched(level string) []annotation {
	return findings(level, "base/policies.yaml", overrideLine)
}

// edited are those of weakPolicies, where it is the other way around.
func edited(file string) []annotation { return findings("error", file, overrideLine-1) }

// pullRequest returns the contexts of a pull request from the commit before HEAD.
func pullRequest(r *repository) map[string]string {
	return map[string]string{
		"github.event_name": "pull_request", "github.event.pull_request.number": "7",
		"github.event.pull_request.base.sha": r.sha("HEAD~1"),
	}
}

// missing is the annotation of a path that one of the revisions does not have.
var missing = annotation{"warning", "", "", "Overrule"}

// notices returns the lines of a comment about such paths, without the notes of the plugin.
func notices(body string) string {
	var out []string
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "> ") && !strings.HasPrefix(line, "> --from ") && !strings.Contains(line, " are not validated") {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return strings.Join(out, "\n")
}

// weakPolicies are policies whose override has another rule.
var weakPolicies = strings.ReplaceAll(policies, `sso: {jwt: {issuerUrl: "https://sso.example.com"}}`, "key: {apiKey: {}}")

func TestActionOnPullRequests(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change      files
		with        map[string]string
		code        int
		denied      string
		annotations []annotation
		comments    int
		summary     string // its first line of text
		notice      string // below the summary of the comment
	}{
		"an overlay that breaks an override fails its own cluster": {
			change: files{"overlays/prod/kustomization.yaml": brokenOverlay}, with: map[string]string{"paths": "overlays/prod"},
			code: 1, denied: "true", annotations: patched("error"), comments: 1,
			summary: "**Overrule: 1 denied; 1 effective policy changes in 1 namespace (1 loses rules.authentication.sso)**",
		},
		"and no other cluster, whose pull request gets no comment": {
			change: files{"overlays/prod/kustomization.yaml": brokenOverlay}, with: map[string]string{"paths": "overlays/dev"},
			denied: "false", summary: "**Overrule: no findings; no effective policy changes**",
		},
		"the position of a plain file is exact, with any name": {
			change: files{"plain files/policies.yaml": weakPolicies}, with: map[string]string{"paths": "\nplain files\n\n"},
			code: 1, denied: "true", annotations: edited("plain files/policies.yaml"), comments: 1,
			summary: "**Overrule: 1 denied; 1 effective policy changes in 1 namespace (1 loses rules.authentication.sso)**",
		},
		"several paths are one cluster, also if a file moved from one to another": {
			change: files{"base/kustomization.yaml": "resources: [gateway.yaml]\n", "base/policies.yaml": "", "moved @to/*p*.yaml": weakPolicies},
			with:   map[string]string{"paths": "base\n\tmoved @to/*p*.yaml \noverlays/prod/route.yaml"},
			code:   1, denied: "true", annotations: append([]annotation{missing}, edited("moved @to/*p*.yaml")...), comments: 1,
			notice:  "> <code>moved \\@to/\\*p\\*.yaml</code> is not in base HEAD~1: its objects are new, unless another path has them in the base. If it was moved, also specify its earlier path.",
			summary: "**Overrule: 1 denied; 1 effective policy changes in 1 namespace (1 loses rules.authentication.sso)**",
		},
		"fail-on: never passes a denied change": {
			change: files{"overlays/prod/kustomization.yaml": brokenOverlay}, with: map[string]string{"paths": "overlays/prod", "fail-on": "never", "comment": "false"},
			denied: "true", annotations: patched("error"),
			summary: "**Overrule: 1 denied; 1 effective policy changes in 1 namespace (1 loses rules.authentication.sso)**",
		},
		"fail-on: warn fails an allowed change with a warning": {
			change: files{"overlays/prod/auth.yaml": routePolicy, "overlays/prod/kustomization.yaml": "resources: [../../base, route.yaml, auth.yaml]\n"},
			with:   map[string]string{"paths": "overlays/prod", "fail-on": "warn"},
			code:   1, denied: "false", comments: 1,
			annotations: []annotation{{"warning", "overlays/prod/auth.yaml", "8", "Overridden: AuthPolicy app/shop-auth"}},
			summary:     "**Overrule: 1 warning; no effective policy changes**",
		},
		"a folder that is new has an empty base": {
			change: files{"it's #1, new/kustomization.yaml": "resources: [../base, ../overlays/dev/route.yaml]\n", "overlays/dev/kustomization.yaml": overlay + "# changed\n"},
			with:   map[string]string{"paths": "it's #1, new", "kustomize-args": "--load-restrictor\nLoadRestrictionsNone"}, denied: "false", comments: 1,
			annotations: []annotation{missing, {"warning", "base/policies.yaml", "2", "BlastRadius: AuthPolicy infra/gw-auth"}},
			notice:      "> <code>it's \\#1, new</code> is not in base HEAD~1: its objects are new, unless another path has them in the base. If it was moved, also specify its earlier path.",
			summary:     "**Overrule: 1 warning; 1 effective policy changes in 1 namespace; 1 new path gets authentication of AuthPolicy infra/gw-auth**",
		},
		"a folder that is removed deletes its objects": {
			change: files{"base/policies.yaml": "", "base/kustomization.yaml": "resources: [gateway.yaml]\n"},
			with:   map[string]string{"paths": "base/policies.yaml\nbase/gateway.yaml\noverlays/prod/route.yaml"},
			code:   1, denied: "true", annotations: append([]annotation{missing}, findings("error", "base/policies.yaml", overrideLine)...), comments: 1,
			notice:  "> <code>base/policies.yaml</code> is not in head HEAD: its objects are deleted, unless another path has them. If it was moved, also specify its new path.",
			summary: "**Overrule: 1 denied; 1 effective policy changes in 1 namespace (1 loses authentication)**",
		},
		"a command of the user renders both revisions": {
			change: files{"plain files/policies.yaml": weakPolicies},
			with:   map[string]string{"render": `cp "plain files"/*.yaml "$OUT"`}, code: 1, denied: "true", comments: 1,
			annotations: []annotation{{"error", "", "", "OverrideRemoved: AuthPolicy infra/gw-auth"}},
			summary:     "**Overrule: 1 denied; 1 effective policy changes in 1 namespace (1 loses rules.authentication.sso)**",
		},
		"arguments reach the plugin": {
			change: files{"overlays/prod/kustomization.yaml": brokenOverlay}, with: map[string]string{"paths": "overlays/prod", "args": "--may-override\n--blast-radius-limit\n10"},
			denied: "false", comments: 1, annotations: patched("warning"),
			summary: "**Overrule: 1 warning; 1 effective policy changes in 1 namespace (1 loses rules.authentication.sso)**",
		},
		"objects of another repository are arguments": {
			change: files{"shop/auth.yaml": routePolicy, "shop/route.yaml": route}, denied: "false", comments: 1,
			with:   map[string]string{"paths": "shop", "args": "--from=base/gateway.yaml\n--from=base/policies.yaml\n--to=base/gateway.yaml\n--to=base/policies.yaml"},
			notice: "> <code>shop</code> is not in base HEAD~1: its objects are new, unless another path has them in the base. If it was moved, also specify its earlier path.",
			annotations: []annotation{
				missing,
				{"warning", "shop/route.yaml", "1", "BlastRadius: HTTPRoute app/shop"},
				{"warning", "shop/auth.yaml", "8", "Overridden: AuthPolicy app/shop-auth"},
			},
			summary: "**Overrule: 2 warnings; 1 effective policy changes in 1 namespace; 1 new path gets authentication of AuthPolicy infra/gw-auth**",
		},
		"validate: strict denies an unknown field": {
			change: files{"plain files/route.yaml": route + "  hostnmes: [a.example.com]\n"}, with: map[string]string{"paths": "plain files", "validate": "strict"},
			code: 1, denied: "true", comments: 1, annotations: []annotation{{"error", "plain files/route.yaml", "7", "UnknownField: HTTPRoute app/shop"}},
			summary: "**Overrule: 1 denied; no effective policy changes**",
		},
		"a path cannot leave the repository": {with: map[string]string{"paths": "base/../../etc"}, code: 2, denied: "false", annotations: []annotation{{"error", "", "", "Overrule"}}},
		"a path must exist":                  {with: map[string]string{"paths": "overlays/test"}, code: 2, denied: "false", annotations: []annotation{{"error", "", "", "Overrule"}}},
		"paths are required":                 {code: 2, denied: "false", annotations: []annotation{{"error", "", "", "Overrule"}}},
		"a path is no command": {
			with: map[string]string{"paths": "$(touch owned)`touch owned`\"; touch owned; '"}, code: 2, denied: "false", annotations: []annotation{{"error", "", "", "Overrule"}},
		},
		"a base is no option": {
			with: map[string]string{"paths": "base", "base": "--upload-pack=touch owned"}, code: 2, denied: "false", annotations: []annotation{{"error", "", "", "Overrule"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepository(t, base, c.change)
			got := readAction(t).run(r, c.with, pullRequest(r))
			assert.Equal(t, c.code, got.code, "%s%s", got.stdout, got.stderr)
			assert.Equal(t, c.denied, got.outputs["denied"])
			assert.Equal(t, strconv.Itoa(c.code), got.outputs["exit-code"])
			assert.Equal(t, c.annotations, annotations(got.stdout), got.stderr)
			var summary string
			if got.summary != "" {
				summary = strings.Split(got.summary, "\n")[1]
			}
			assert.Equal(t, c.summary, summary)
			comments := r.readComments()
			require.Len(t, comments, c.comments)
			if c.comments > 0 {
				assert.Equal(t, r.named(c.notice), notices(comments[0].Body))
			}
			r.requireUnchanged()
		})
	}
}

func TestActionReports(t *testing.T) {
	t.Parallel()
	r := newRepository(t, base, files{"overlays/prod/kustomization.yaml": brokenOverlay})
	with := map[string]string{"paths": "overlays/prod", "name": "prod", "sarif-file": "a b/out.sarif", "junit-file": "out.xml", "redact-values": "true"}
	got := readAction(t).run(r, with, pullRequest(r))
	require.Equal(t, 1, got.code, got.stderr)
	assert.Equal(t, "a b/out.sarif", got.outputs["sarif"])
	assert.Equal(t, "out.xml", got.outputs["junit"])
	sarif, err := os.ReadFile(filepath.Join(r.dir, "a b/out.sarif"))
	require.NoError(t, err)
	assert.Contains(t, string(sarif), `"uri": "base/policies.yaml"`)
	junit, err := os.ReadFile(filepath.Join(r.dir, "out.xml"))
	require.NoError(t, err)
	assert.Contains(t, string(junit), "<failure")

	markdown, err := os.ReadFile(got.outputs["markdown"])
	require.NoError(t, err)
	rest, ok := strings.CutPrefix(string(markdown), "<!-- overrule -->\n")
	require.True(t, ok)
	comments := r.readComments()
	require.Len(t, comments, 1)
	assert.Equal(t, "<!-- overrule -->\n<!-- name: prod -->\n### prod\n\n"+rest, comments[0].Body)
	assert.Equal(t, string(markdown), got.summary)
	assert.NotContains(t, string(markdown), "sso.example.com", "a value")
}

func TestActionUpdatesItsComment(t *testing.T) {
	t.Parallel()
	own := comment{ID: 3, Body: "<!-- overrule -->\r\n<!-- name: prod -->\r\n### prod\r\nearlier"}
	own.User.Type = "Bot"
	forged := own
	forged.ID, forged.User.Type = 1, "User"
	other := own
	other.ID, other.Body = 2, "<!-- overrule -->\n<!-- name: production -->\nof another cluster"
	forged.User.Login = "mallory"
	r := newRepository(t, base, files{"overlays/prod/kustomization.yaml": overlay + "# no effect\n"})
	with, contexts := map[string]string{"paths": "overlays/prod", "name": "prod"}, pullRequest(r)
	updated := own
	updated.Body = "<!-- overrule -->\n<!-- name: prod -->\n### prod\n\n**Overrule: no findings; no effective policy changes**\n\nNo object in the change affects effective policies.\n"

	r.setComments(forged, other, own)
	got := readAction(t).run(r, with, contexts)
	require.Zero(t, got.code, got.stderr)
	assert.Equal(t, []comment{forged, other, updated}, r.readComments())

	own.User.Type, own.User.Login = "User", "dev"
	updated.User = own.User
	r.setComments(forged, other, own)
	contexts["login"] = "dev"
	got = readAction(t).run(r, with, contexts)
	require.Zero(t, got.code, got.stderr)
	assert.Equal(t, []comment{forged, other, updated}, r.readComments(), "the token of a user updates the comment of that user")
}

func TestActionWarnsIfItCannotComment(t *testing.T) {
	t.Parallel()
	r := newRepository(t, base, files{"overlays/prod/kustomization.yaml": brokenOverlay})
	contexts := pullRequest(r)
	contexts["forbidden"] = "1"
	got := readAction(t).run(r, map[string]string{"paths": "overlays/prod"}, contexts)
	assert.Equal(t, 1, got.code, "of the check")
	assert.Equal(t, append(patched("error"), annotation{"warning", "", "", "Overrule"}), annotations(got.stdout))
	assert.Contains(t, got.stdout, "::warning title=Overrule::no comment was written: cannot create it%0A"+
		"gh: Resource not accessible by integration (HTTP 403)%0AThe token needs the permission pull-requests: write, which pull requests from forks do not have.\n")

	require.NoError(t, os.WriteFile(r.comments, []byte("{"), 0o600))
	got = readAction(t).run(r, map[string]string{"paths": "overlays/dev"}, contexts)
	assert.Zero(t, got.code, "of the check")
	assert.Contains(t, got.stdout, "::warning title=Overrule::no comment was written: cannot list the comments%0Aunexpected end of JSON input\n", "what gh printed, and no guess")
}

func TestActionRejectsAnInvalidName(t *testing.T) {
	t.Parallel()
	r := newRepository(t, base, files{"readme.md": "none"})
	got := readAction(t).run(r, map[string]string{"paths": "overlays/prod", "name": "a --> b"}, pullRequest(r))
	assert.Equal(t, 2, got.code)
	assert.Contains(t, got.stdout, `::error title=Overrule::invalid name "a --> b": must be ASCII letters, digits, spaces and the characters . _ / -, without --`+"\n")
	assert.Len(t, annotations(got.stdout), 1)
	assert.Empty(t, r.readComments())
}

func TestActionFindsTheBase(t *testing.T) {
	t.Parallel()
	broken := files{"overlays/prod/kustomization.yaml": brokenOverlay}
	r := newRepository(t, base, broken)
	before := r.sha("HEAD~1")
	shallow := r.shallowClone()
	r.git("branch", "release", before)
	paths := map[string]string{"paths": "overlays/prod"}
	of := func(base string) map[string]string { return map[string]string{"paths": "overlays/prod", "base": base} }
	for name, c := range map[string]struct {
		r        *repository
		with     map[string]string
		contexts map[string]string
		code     int
	}{
		"of a pull request, in a shallow clone": {shallow, paths, map[string]string{"github.event.pull_request.base.sha": before}, 1},
		"of a merge group":                      {r, paths, map[string]string{"github.event.merge_group.base_sha": before}, 1},
		"of a push":                             {r, paths, map[string]string{"github.event.before": before}, 1},
		"of a push of the same commit":          {r, paths, map[string]string{"github.event.before": r.sha("HEAD")}, 0},
		"of a new branch":                       {r, paths, map[string]string{"github.event.before": strings.Repeat("0", 40)}, 1},
		"of another event, in a shallow clone":  {shallow, paths, nil, 1},
		"a branch of a shallow clone's origin":  {shallow, of("release"), nil, 1},
		"a branch":                              {r, of("release"), nil, 1},
		"a commit that does not exist":          {shallow, of(strings.Repeat("1", 40)), nil, 2},
	} {
		t.Run(name, func(t *testing.T) {
			clone := *c.r
			clone.t = t
			contexts := maps.Clone(c.contexts)
			if contexts == nil {
				contexts = map[string]string{}
			}
			got := readAction(t).run(&clone, c.with, contexts)
			assert.Equal(t, c.code, got.code, "%s%s", got.stdout, got.stderr)
			clone.requireUnchanged()
		})
	}
	assert.Equal(t, "true", shallow.git("rev-parse", "--is-shallow-repository"))
	assert.Equal(t, "false", r.git("rev-parse", "--is-shallow-repository"))

	first := newRepository(t, base)
	got := readAction(t).run(first, paths, map[string]string{})
	assert.Zero(t, got.code, "the first commit has an empty base: %s", got.stderr)
}

func TestActionInAFolderOfTheRepository(t *testing.T) {
	t.Parallel()
	r := newRepository(t, files{"outside.yaml": "{"}, files{"deploy here/p.yaml": policies, "deploy here/g.yaml": gateways, "deploy here/r.yaml": route}, files{"deploy here/p.yaml": weakPolicies})
	with := map[string]string{"paths": ".", "working-directory": "deploy here"}
	got := readAction(t).run(r, with, pullRequest(r))
	assert.Equal(t, edited("deploy here/p.yaml"), annotations(got.stdout), got.stderr)
	contexts := pullRequest(r)
	contexts["github.event.pull_request.base.sha"] = r.sha("HEAD~2")
	got = readAction(t).run(r, with, contexts)
	assert.Zero(t, got.code, "the folder is new: %s", got.stderr)
}

func TestActionReportsWhatCannotBeRendered(t *testing.T) {
	t.Parallel()
	broken := files{"overlays/prod/kustomization.yaml": "resources: [missing.yaml]\n"}
	fixed := files{"overlays/prod/kustomization.yaml": overlay}
	for name, c := range map[string]struct {
		commits []files
		with    map[string]string
		want    []string // parts of the error
	}{
		"the change":            {[]files{base, broken}, map[string]string{"paths": "overlays/prod"}, []string{"overlays/prod", "head HEAD"}},
		"the base":              {[]files{base, broken, fixed}, map[string]string{"paths": "overlays/prod"}, []string{"overlays/prod", "base HEAD~1"}},
		"a command of the user": {[]files{base, {"x": "y"}}, map[string]string{"render": "echo '::warning title=forged::a'; echo ' ::warning title=forged::b' >&2; false"}, []string{"render command of base HEAD~1"}},
		"a plain file that is no YAML": {
			[]files{base, {"plain files/policies.yaml": "{"}}, map[string]string{"paths": "plain files"}, []string{"plain files/policies.yaml"},
		},
		"a folder of overlays": {
			[]files{base, {"x": "y"}}, map[string]string{"paths": "overlays"}, []string{"overlays", "base HEAD~1", "dev/kustomization.yaml"},
		},
		"the manifests of two clusters": {
			[]files{base, {"x": "y"}}, map[string]string{"paths": "overlays/dev\noverlays/prod", "redact-values": "true"}, []string{"duplicate object", "check each cluster on its own"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepository(t, c.commits...)
			earlier := comment{ID: 3, Body: "<!-- overrule -->\n<!-- name:  -->\n**Overrule: no findings"}
			earlier.User.Type = "Bot"
			r.setComments(earlier)
			got := readAction(t).run(r, c.with, pullRequest(r))
			require.Equal(t, 2, got.code, got.stderr)
			message := got.stdout[strings.LastIndex(got.stdout, "::error title=Overrule::"):]
			comments := r.readComments()
			require.Len(t, comments, 1)
			text, ok := strings.CutPrefix(comments[0].Body, "<!-- overrule -->\n<!-- name:  -->\n**Overrule: the change could not be checked**\n\n")
			require.True(t, ok, comments[0].Body)
			redacted := c.with["redact-values"] == "true"
			if redacted {
				assert.Equal(t, "The log of the job has the error.\n", text)
			}
			for line := range strings.Lines(text) {
				assert.Equal(t, !redacted, strings.HasPrefix(line, "    "), "a block of code: %s", text)
			}
			for _, part := range c.want {
				part = r.named(part)
				assert.Contains(t, message, part)
				assert.Equal(t, !redacted, strings.Contains(text, part), text)
				assert.NotContains(t, got.stderr, part, "an error is printed once")
			}
			assert.Len(t, annotations(got.stdout+"\n"+got.stderr), 1, "what is rendered writes none")
			assert.Empty(t, got.outputs["sarif"], "upload-sarif is left out")
			r.requireUnchanged()
		})
	}
}

// The example uses inputs and outputs that the action has.
func TestExampleWorkflow(t *testing.T) {
	t.Parallel()
	var workflow struct {
		Jobs map[string]struct{ Steps []actionStep }
	}
	readYAML(t, "examples/pipelines/github/workflow.yaml", &workflow)
	r := newRepository(t, base, files{"overlays/prod/kustomization.yaml": brokenOverlay})
	contexts := pullRequest(r)
	contexts["matrix.cluster"] = "prod"
	var got actionRun
	for _, s := range workflow.Jobs["check"].Steps {
		switch name, _, _ := strings.Cut(s.Uses, "@"); name {
		case "OWNER/overrule":
			for key, value := range s.With {
				s.With[key] = evaluate(t, value, contexts)
			}
			got = readAction(t).run(r, s.With, contexts)
			for key, value := range got.outputs {
				contexts["steps."+s.ID+".outputs."+key] = value
			}
		case "github/codeql-action/upload-sarif":
			assert.FileExists(t, evaluate(t, s.With["sarif_file"], contexts))
		}
	}
	assert.Equal(t, patched("error"), annotations(got.stdout), got.stderr)
	assert.Contains(t, r.readComments()[0].Body, "### prod\n")
}
