//go:build long

package pipelines

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// hook is a hook of pre-commit.
type hook struct {
	ID, Language, Entry, Files string
	PassFilenames              bool `yaml:"pass_filenames"`
}

// readHook returns the hook, and the path of its script.
func readHook(t *testing.T) (hook, string) {
	t.Helper()
	var hooks []hook
	root := readYAML(t, ".pre-commit-hooks.yaml", &hooks)
	require.Len(t, hooks, 1)
	require.Equal(t, "script", hooks[0].Language)
	require.False(t, hooks[0].PassFilenames)
	return hooks[0], filepath.Join(root, hooks[0].Entry)
}

func TestHook(t *testing.T) {
	t.Parallel()
	broken := files{"overlays/prod/kustomization.yaml": brokenOverlay}
	for name, c := range map[string]struct {
		commits          []files
		staged, unstaged files
		args             []string
		code             int
		want             string // in the output
	}{
		"a staged change that breaks an override is denied": {commits: []files{base}, staged: broken, args: []string{"overlays/prod"}, code: 1, want: "OverrideRemoved"},
		"another cluster is not":                            {commits: []files{base}, staged: broken, args: []string{"overlays/dev"}},
		"what is not staged is not read":                    {commits: []files{base}, unstaged: broken, args: []string{"overlays/prod"}},
		"and does not repair what is staged": {
			commits: []files{base}, staged: broken, unstaged: files{"overlays/prod/kustomization.yaml": overlay},
			args: []string{"overlays/prod"}, code: 1, want: "OverrideRemoved",
		},
		"a warning does not stop a commit": {
			commits: []files{base}, staged: files{"plain files/shop.yaml": routePolicy}, args: []string{"plain files"}, want: "Overridden",
		},
		"the first commit has an empty base": {
			staged: base, args: []string{"overlays/prod"}, want: "CREATE",
		},
		"names may have spaces": {
			commits: []files{base}, staged: files{"plain files/policies.yaml": weakPolicies}, args: []string{"plain files"}, code: 1, want: "OverrideRemoved",
		},
		"what cannot be rendered is an error": {
			commits: []files{base}, staged: files{"overlays/prod/kustomization.yaml": "resources: [missing.yaml]\n"},
			args: []string{"overlays/prod"}, code: 2, want: `cannot render the kustomization "overlays/prod" of the index`,
		},
		"paths are required": {commits: []files{base}, staged: broken, code: 2, want: "no paths"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepository(t, c.commits...)
			r.write(c.staged)
			r.git("add", "--all")
			r.write(c.unstaged)
			before := r.git("status", "--porcelain")
			_, script := readHook(t)
			got := r.run(r.dir, nil, script, c.args...)
			assert.Equal(t, c.code, got.code, "%s%s", got.stdout, got.stderr)
			assert.Contains(t, got.stdout+got.stderr, c.want)
			assert.Equal(t, before, r.git("status", "--porcelain"), "the index is as it was")
		})
	}
}

// Git sets variables for its hooks, such as the index of a commit of some files only.
func TestHookOfGit(t *testing.T) {
	t.Parallel()
	r := newRepository(t, base)
	_, script := readHook(t)
	hooks := filepath.Join(r.dir, ".git", "hooks", "pre-commit")
	require.NoError(t, os.WriteFile(hooks, []byte("#!/bin/sh\nexec '"+script+"' overlays/prod\n"), 0o755))
	r.write(files{"overlays/prod/kustomization.yaml": brokenOverlay, "overlays/dev/kustomization.yaml": overlay + "# changed\n"})
	head := r.sha("HEAD")
	got := r.run(r.dir, nil, "git", "commit", "--quiet", "--all", "--message=all")
	assert.Equal(t, 1, got.code, got.stderr)
	assert.Equal(t, head, r.sha("HEAD"))
	got = r.run(r.dir, nil, "git", "commit", "--quiet", "--message=one file", "overlays/dev/kustomization.yaml")
	assert.Zero(t, got.code, got.stderr)
	assert.Equal(t, " M overlays/prod/kustomization.yaml", strings.TrimSuffix(r.run(r.dir, nil, "git", "status", "--porcelain").stdout, "\n"))
}

func TestHookRunsForManifests(t *testing.T) {
	t.Parallel()
	h, _ := readHook(t)
	pattern := regexp.MustCompile(h.Files)
	for _, path := range []string{"a.yaml", "a/b.yml", "a.json", "chart/templates/_names.tpl", "Kustomization", "a/Kustomization"} {
		assert.Regexp(t, pattern, path)
	}
	for _, path := range []string{"readme.md", "a.yaml.txt", "aKustomization"} {
		assert.NotRegexp(t, pattern, path)
	}
}

// The example uses the hook.
func TestExampleHookConfiguration(t *testing.T) {
	t.Parallel()
	var config struct {
		Repos []struct {
			Hooks []struct {
				ID   string
				Args []string
			}
		}
	}
	readYAML(t, "examples/pipelines/pre-commit/.pre-commit-config.yaml", &config)
	h, _ := readHook(t)
	for _, used := range config.Repos[0].Hooks {
		assert.Equal(t, h.ID, used.ID)
		assert.Len(t, used.Args, 1)
	}
}
