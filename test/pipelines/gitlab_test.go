//go:build long

package pipelines

import (
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// gitlabJob is the job of the example.
type gitlabJob struct {
	Variables map[string]string
	Script    []string
	Artifacts struct {
		When    string
		Paths   []string
		Reports map[string]string
	}
}

// runJob runs the script of the example on a merge request, whose repository has a copy of
// the scripts.
func runJob(r *repository, variables map[string]string) (gitlabJob, result) {
	t := r.t
	t.Helper()
	var jobs struct{ Overrule gitlabJob }
	root := readYAML(t, "examples/pipelines/gitlab/.gitlab-ci.yml", &jobs)
	require.NoError(t, os.CopyFS(filepath.Join(r.dir, "ci/overrule"), os.DirFS(filepath.Join(root, "examples/pipelines/scripts"))))
	environ := map[string]string{
		"CI_API_V4_URL": "https://gitlab.example.com/api/v4", "CI_PROJECT_ID": "12", "CI_MERGE_REQUEST_IID": "7",
		"CI_MERGE_REQUEST_DIFF_BASE_SHA": r.sha("HEAD~1"), "OVERRULE_TOKEN": gitlabToken, "CLUSTER": "prod",
	}
	maps.Copy(environ, variables)
	for name, value := range jobs.Overrule.Variables {
		environ[name] = os.Expand(value, func(name string) string { return environ[name] })
	}
	return jobs.Overrule, r.run(r.dir, environ, "bash", "-e", "-o", "pipefail", "-c", strings.Join(jobs.Overrule.Script, "\n"))
}

func TestGitLabJob(t *testing.T) {
	t.Parallel()
	broken := files{"overlays/prod/kustomization.yaml": brokenOverlay}
	earlier := comment{ID: 5, Body: "<!-- overrule -->\n<!-- name: prod -->\n### prod\nearlier"}
	system := earlier
	system.ID, system.System = 4, true
	unrelated := make([]comment, 100) // a page
	for name, c := range map[string]struct {
		change    files
		variables map[string]string
		notes     []comment
		code      int
		want      int // notes
		text      string
	}{
		"a broken override fails the job and gets a note": {change: broken, code: 1, want: 1},
		"the note of an earlier run is updated":           {change: broken, notes: []comment{system, earlier}, code: 1, want: 2},
		"also on the second page":                         {change: broken, notes: append(unrelated, earlier), code: 1, want: 101},
		"a change without effect gets no note":            {change: files{"readme.md": "none"}},
		"the job of another cluster passes":               {change: broken, variables: map[string]string{"CLUSTER": "dev"}},
		"without a token there is no note":                {change: broken, variables: map[string]string{"OVERRULE_TOKEN": ""}, code: 1},
		"a token that is not allowed is no failure":       {change: broken, variables: map[string]string{forbiddenVariable: "1"}, code: 1},
		"what cannot be rendered fails the job, and updates the note": {
			change: files{"overlays/prod/kustomization.yaml": "x: y\n"}, notes: []comment{earlier}, code: 2, want: 1, text: "the change could not be checked**\n\n    ",
		},
		"but creates none": {change: files{"overlays/prod/kustomization.yaml": "x: y\n"}, code: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepository(t, base, c.change)
			r.setComments(c.notes...)
			r.write(files{".overrule/overrule.sarif": "of an earlier run"})
			job, got := runJob(r, c.variables)
			require.Equal(t, c.code, got.code, "%s%s", got.stdout, got.stderr)
			notes := r.readComments()
			require.Len(t, notes, c.want)
			if c.want > 0 {
				assert.True(t, strings.HasPrefix(notes[c.want-1].Body, "<!-- overrule -->\n<!-- name: prod -->\n### prod\n\n**Overrule: "+cmp.Or(c.text, "1 denied")), notes[c.want-1].Body)
			}
			assert.NotContains(t, got.stdout+got.stderr, gitlabToken)
			if c.code < 2 {
				requireReports(t, r.dir, job, c.code == 1)
			} else {
				assert.Equal(t, 1, strings.Count(got.stderr, "cannot render the kustomization"), got.stderr)
				assert.NoFileExists(t, filepath.Join(r.dir, ".overrule/overrule.sarif"))
			}
		})
	}
}

// requireReports checks the reports that the job names as its artifacts.
func requireReports(t *testing.T, dir string, job gitlabJob, failed bool) {
	t.Helper()
	require.Equal(t, "always", job.Artifacts.When)
	junit, err := os.ReadFile(filepath.Join(dir, job.Artifacts.Reports["junit"]))
	require.NoError(t, err)
	require.Equal(t, failed, strings.Contains(string(junit), "<failure"))
	data, err := os.ReadFile(filepath.Join(dir, job.Artifacts.Reports["codequality"]))
	require.NoError(t, err)
	var entries []struct {
		CheckName string `json:"check_name"`
		Location  struct{ Path string }
	}
	require.NoError(t, json.Unmarshal(data, &entries))
	require.Equal(t, failed, len(entries) > 0)
	if failed {
		assert.Equal(t, "OverrideRemoved", entries[0].CheckName)
		assert.Equal(t, "base/policies.yaml", entries[0].Location.Path)
	}
}

// The commit of a pipeline for merged results has what was merged to the target branch
// since the merge request was created.
func TestGitLabJobOnMergedResults(t *testing.T) {
	t.Parallel()
	r := newRepository(t, base, files{"overlays/prod/kustomization.yaml": brokenOverlay}, files{"readme.md": "none"})
	_, got := runJob(r, map[string]string{"CI_MERGE_REQUEST_DIFF_BASE_SHA": r.sha("HEAD~2"), "CI_MERGE_REQUEST_TARGET_BRANCH_SHA": r.sha("HEAD~1")})
	assert.Zero(t, got.code, got.stderr)
}
