//go:build long

package pipelines

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"overrule.dev/overrule/test/env"
)

// action is a composite action of GitHub.
type action struct {
	dir    string
	Inputs map[string]struct {
		Description string
		Default     string
	}
	Outputs map[string]struct{ Value string }
	Runs    struct {
		Using string
		Steps []actionStep
	}
}

// actionStep is a step of an action, or of a job.
type actionStep struct {
	ID, Shell, Run, Uses string
	If                   string
	WorkingDirectory     string `yaml:"working-directory"`
	Env                  map[string]string
	With                 map[string]string
}

// readYAML reads a file of the repository of Overrule.
func readYAML(t *testing.T, path string, into any) (root string) {
	t.Helper()
	root, err := env.Repository(t.Context())
	require.NoError(t, err)
	data, err := os.ReadFile(filepath.Join(root, path))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(data, into))
	return root
}

func readAction(t *testing.T) action {
	t.Helper()
	var a action
	a.dir = readYAML(t, "action.yml", &a)
	return a
}

// actionRun is what a run of an action left.
type actionRun struct {
	result
	outputs map[string]string
	summary string
}

var expression = regexp.MustCompile(`\$\{\{\s*([^}]*?)\s*\}\}`)

// evaluate replaces the expressions of a text. An unknown context has no value, as on
// GitHub, but must be one of those given.
func evaluate(t *testing.T, text string, contexts map[string]string) string {
	t.Helper()
	return expression.ReplaceAllStringFunc(text, func(e string) string {
		name := expression.FindStringSubmatch(e)[1]
		require.Regexp(t, `^(inputs|github|matrix|steps)(\.[\w-]+)+$`, name, "an expression that the test can evaluate")
		return contexts[name]
	})
}

// run runs the action on a repository as GitHub's runner does. The contexts are those of
// the event, such as github.event.before.
func (a action) run(r *repository, with, contexts map[string]string) actionRun {
	t := r.t
	t.Helper()
	require.Equal(t, "composite", a.Runs.Using)
	contexts = maps.Clone(contexts)
	contexts["github.action_path"], contexts["github.token"] = a.dir, "ghs-secret"
	for name := range with {
		require.Contains(t, a.Inputs, name)
	}
	for name, input := range a.Inputs {
		contexts["inputs."+name] = evaluate(t, input.Default, contexts)
		if value, ok := with[name]; ok {
			contexts["inputs."+name] = value
		}
	}
	temp := t.TempDir()
	variables := map[string]string{
		"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": r.dir, "GITHUB_REPOSITORY": "acme/shop", "RUNNER_TEMP": temp,
		"GITHUB_STEP_SUMMARY": filepath.Join(temp, "summary"), "GITHUB_PATH": filepath.Join(temp, "path"),
		forbiddenVariable: contexts["forbidden"], loginVariable: contexts["login"],
	}
	var out actionRun
	for _, s := range a.Runs.Steps {
		if out.code == 0 {
			a.runStep(r, s, contexts, maps.Clone(variables), &out)
		}
	}
	out.outputs = make(map[string]string)
	for name, output := range a.Outputs {
		out.outputs[name] = evaluate(t, output.Value, contexts)
	}
	if data, err := os.ReadFile(variables["GITHUB_STEP_SUMMARY"]); err == nil {
		out.summary = string(data)
	}
	return out
}

func (a action) runStep(r *repository, s actionStep, contexts, variables map[string]string, out *actionRun) {
	t := r.t
	t.Helper()
	require.Equal(t, "bash", s.Shell)
	require.Empty(t, s.If)
	require.NotContains(t, s.Run, "${{", "an expression in a script is an injection")
	for name, value := range s.Env {
		variables[name] = evaluate(t, value, contexts)
	}
	variables["GITHUB_OUTPUT"] = filepath.Join(t.TempDir(), "output")
	script := filepath.Join(t.TempDir(), "step.sh")
	require.NoError(t, os.WriteFile(script, []byte(s.Run), 0o600))
	got := r.run(filepath.Join(r.dir, evaluate(t, s.WorkingDirectory, contexts)), variables, "bash", "--noprofile", "--norc", "-e", "-o", "pipefail", script)
	out.stdout += got.stdout
	out.stderr += got.stderr
	out.code = got.code
	for name, value := range readOutputs(t, variables["GITHUB_OUTPUT"]) {
		contexts["steps."+s.ID+".outputs."+name] = value
	}
}

// readOutputs reads a file of outputs: NAME<<END, lines, and END.
func readOutputs(t *testing.T, file string) map[string]string {
	t.Helper()
	out := make(map[string]string)
	data, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return out
	}
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		name, end, ok := strings.Cut(lines[i], "<<")
		require.True(t, ok, lines[i])
		var value []string
		for i++; lines[i] != end; i++ {
			value = append(value, lines[i])
		}
		out[name] = strings.Join(value, "\n")
	}
	return out
}

// annotation is an annotation that GitHub shows.
type annotation struct{ level, file, line, title string }

var workflowCommand = regexp.MustCompile(`(?m)^\s*::(error|warning|notice) ([^:]*)::`)

// annotations returns the annotations of the output of steps.
func annotations(stdout string) []annotation {
	var out []annotation
	for _, m := range workflowCommand.FindAllStringSubmatch(stdout, -1) {
		a := annotation{level: m[1]}
		for property := range strings.SplitSeq(m[2], ",") {
			switch name, value, _ := strings.Cut(property, "="); name {
			case "file":
				a.file = value
			case "line":
				a.line = value
			case "title":
				a.title = strings.ReplaceAll(value, "%3A", ":")
			}
		}
		out = append(out, a)
	}
	return out
}
