package commands

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sarifPositions returns the results of a SARIF log as "rule file:line:column".
func sarifPositions(t *testing.T, text string) []string {
	t.Helper()
	var log struct {
		Runs []struct {
			Results []struct {
				RuleID    string
				Locations []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI string }
						Region           struct{ StartLine, StartColumn int }
					}
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(text), &log), text)
	var out []string
	for _, r := range log.Runs[0].Results {
		at := ""
		for _, l := range r.Locations {
			p := l.PhysicalLocation
			at = fmt.Sprintf(" %s:%d:%d", p.ArtifactLocation.URI, p.Region.StartLine, p.Region.StartColumn)
		}
		out = append(out, r.RuleID+at)
	}
	return out
}

// The findings of check point at the field that they are about.
func TestFindingsHavePositions(t *testing.T) {
	const policy = `apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {namespace: app, name: shop}
spec:
  targetRef:
    group: gateway.networking.k8s.io
    kind: HTTPRoute
    name: shop
  `
	base := []string{"gateways.yaml", twoGateways, "route.yaml", routeOn("a"), "sso.yaml", overrideOn("a", "sso")}
	limited := authOn("Gateway", "infra", "sso", "a", `overrides: {strategy: merge, when: "spec.rules.authorization.a.value > 5", rules: {authorization: {a: {value: 5}}}}`)
	for name, c := range map[string]struct {
		from    []string
		file    string
		text    string
		want    string
		removed bool
	}{
		"an overridden rule": {base, "shop.yaml", policy + "rules:\n    authentication:\n      sso: {value: 2}\n", "Overridden shop.yaml:11:7", false},
		"an overridden rule in a block": {
			base, "shop.yaml", policy + "defaults:\n    rules:\n      authentication:\n        sso: {value: 2}\n", "Overridden shop.yaml:12:9", false,
		},
		"a value over a limit": {
			append(base[:4:4], "limit.yaml", limited), "shop.yaml", policy + "rules: {authorization: {a: {value: 6}}}\n", "ConstraintViolated shop.yaml:9:27", false,
		},
		"an entry of unset": {
			base, "shop.yaml", policy + "unset:\n  - nothing\n  - rules.authentication.sso\n  rules: {authorization: {a: {value: 6}}}\n", "UnsetOverride shop.yaml:11:5", false,
		},
		"a target that does not exist": {base, "shop.yaml", strings.Replace(policy, "name: shop\n", "name: nowhere\n", 1) + "rules: {authorization: {a: {value: 6}}}\n", "TargetNotFound shop.yaml:5:3", false},
		"a field of the wrong type":    {base, "shop.yaml", policy + "rules: 7\n", "Invalid shop.yaml:9:3", false},
		"a field of a route": {
			base, "route.yaml", strings.Replace(routeOn("a"), "name: a}", "name: b}", 1), "OverrideEvaded route.yaml:6:35", false,
		},
		"a deleted object": {base, "sso.yaml", "", "OverrideRemoved sso.yaml:7:57", true},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := revision(t, c.from...), revision(t, append(c.from, c.file, c.text)...)
			if c.removed {
				require.NoError(t, os.Remove(filepath.Join(to, c.file)))
			}
			for _, dir := range []string{from, to} {
				require.NoError(t, os.Mkdir(filepath.Join(dir, ".git"), 0o750))
			}
			got := run(t, "", "check", "--from", from, "--to", to, "-o", "sarif")
			require.NotEqual(t, exitError, got.code, got.stderr)
			assert.Contains(t, sarifPositions(t, got.stdout), c.want)
		})
	}
}

func TestPathsOfReports(t *testing.T) {
	repository := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(repository, ".git"), 0o750))
	nested := filepath.Join(repository, "a folder", "b,c")
	require.NoError(t, os.MkdirAll(nested, 0o750))
	outside := t.TempDir()
	work := t.TempDir()
	t.Chdir(work)
	for name, c := range map[string]struct{ root, file, want string }{
		"relative to the repository of the file":          {"", filepath.Join(nested, "x y.yaml"), "a folder/b,c/x y.yaml"},
		"relative to the working directory without one":   {"", filepath.Join(work, "x.yaml"), "x.yaml"},
		"absolute outside of both":                        {"", filepath.Join(outside, "x.yaml"), filepath.Join(outside, "x.yaml")},
		"relative to the given directory":                 {nested, filepath.Join(nested, "x.yaml"), "x.yaml"},
		"absolute outside of the given directory":         {nested, filepath.Join(repository, "x.yaml"), filepath.Join(repository, "x.yaml")},
		"relative, though the file was given differently": {"", "../" + filepath.Base(work) + "/x.yaml", "x.yaml"},
		"standard input":                                  {"", "-", "-"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, (&reportPaths{root: c.root}).path(c.file))
		})
	}
}

// deniedChange returns the arguments that check a denied change.
func deniedChange(t *testing.T) []string {
	return []string{"--from", revision(t, "gateways.yaml", twoGateways, "route.yaml", routeOn("a"), "sso.yaml", overrideOn("a", "sso")), "--to", revision(t, "gateways.yaml", twoGateways, "route.yaml", routeOn("a"))}
}

// warnedChange returns the arguments that check a change with a warning.
func warnedChange(t *testing.T) []string {
	base := []string{"gateways.yaml", twoGateways, "route.yaml", routeOn("a"), "sso.yaml", overrideOn("a", "sso")}
	return []string{"--from", revision(t, base...), "--to", revision(t, append(base, "shop.yaml", authOn("HTTPRoute", "app", "shop", "shop", "rules: {authentication: {sso: {value: 2}}}"))...)}
}

func TestFailOn(t *testing.T) {
	denied, warned := deniedChange(t), warnedChange(t)
	broken := []string{"-f", revision(t, "a.yaml", "kind: ["), "--against", revision(t, "a.yaml", twoGateways)}
	violating := filepath.Join(revision(t, "all.yaml", twoGateways+"---"+authOn("Gateway", "infra", "sso", "a", "rules: 7")), "all.yaml")
	for _, c := range []struct {
		args []string
		on   string
		want int
	}{
		{denied, "deny", exitNegative},
		{denied, "warn", exitNegative},
		{denied, "never", exitOK},
		{warned, "deny", exitOK},
		{warned, "warn", exitNegative},
		{warned, "never", exitOK},
		{broken, "deny", exitError},
		{broken, "warn", exitError},
		{broken, "never", exitError},
	} {
		got := run(t, "", append([]string{"check", "--fail-on", c.on}, c.args...)...)
		assert.Equal(t, c.want, got.code, "--fail-on %s: %s", c.on, got.stderr)
	}
	sso := func(value string) string {
		return revision(t, "gateways.yaml", twoGateways, "route.yaml", routeOn("a"), "sso.yaml", authOn("Gateway", "infra", "sso", "a", "rules: {authentication: {sso: {value: "+value+"}}}"))
	}
	counted := []string{"check", "--from", sso("1"), "--to", sso("2"), "--fail-on"} // a warning with the number of paths alone
	got := run(t, "", append(counted, "warn")...)
	assert.Equal(t, exitNegative, got.code, got.stderr)
	assert.Contains(t, got.stdout, "warning BlastRadius: ", "what makes the command fail is shown")
	assert.NotContains(t, run(t, "", append(counted, "deny")...).stdout, "BlastRadius", "the line of the verdict says it")
	for _, format := range reportFormats {
		t.Run(string(format), func(t *testing.T) {
			assert.Equal(t, exitNegative, run(t, "", append([]string{"check", "-o", string(format)}, denied...)...).code)
			assert.Equal(t, exitOK, run(t, "", append([]string{"check", "-o", string(format)}, warned...)...).code)
			assert.Equal(t, exitError, run(t, "", append([]string{"check", "-o", string(format)}, broken...)...).code)
			assert.Equal(t, exitNegative, run(t, "", "violations", "-o", string(format), "-f", violating).code)
		})
	}
	assert.Equal(t, exitOK, run(t, "", "violations", "--fail-on", "never", "-f", violating).code)
	assert.Equal(t, exitNegative, run(t, "", append([]string{"check"}, denied...)...).code, "the default is deny")
	assert.Equal(t, exitOK, run(t, "", append([]string{"check"}, warned...)...).code)
}

func TestOutputFiles(t *testing.T) {
	dir := t.TempDir()
	args := append([]string{"check"}, deniedChange(t)...)
	table := run(t, "", args...)
	var files []string
	for _, format := range reportFormats {
		files = append(files, "--output-file", string(format)+"="+filepath.Join(dir, "a,b =c."+string(format)))
	}
	got := run(t, "", append(args, files...)...)
	assert.Equal(t, table, got, "beside the normal output")
	for _, format := range reportFormats {
		text, err := os.ReadFile(filepath.Join(dir, "a,b =c."+string(format)))
		require.NoError(t, err)
		assert.Equal(t, run(t, "", append(args, "-o", string(format))...).stdout, string(text), format)
		assert.NotEmpty(t, text)
	}
}

func TestOutputFilesThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	args := append([]string{"check"}, deniedChange(t)...)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no path":                     {[]string{"--output-file", "sarif"}, `invalid --output-file "sarif": must be FORMAT=PATH`},
		"an empty path":               {[]string{"--output-file", "sarif="}, `invalid --output-file "sarif=": must be FORMAT=PATH`},
		"an unknown format":           {[]string{"--output-file", "pdf=x"}, `invalid --output-file "pdf=x": the format must be table, tree, json, yaml, github, sarif, junit, gitlab or markdown`},
		"one file twice by two paths": {[]string{"--output-file", "json=" + dir + "/x", "--output-file", "yaml=" + dir + "/./x"}, "is already written in another format"},
		"one file twice":              {[]string{"--output-file", "json=" + dir + "/x", "--output-file", "yaml=" + dir + "/x"}, "is already written in another format"},
		"a root that is no directory": {[]string{"--report-root", dir + "/nowhere"}, "must be a directory"},
		"an unknown --fail-on":        {[]string{"--fail-on", "error"}, `invalid value "error" for --fail-on: must be one of deny, warn, never`},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, "", append(args, c.args...)...)
			assert.Equal(t, exitError, got.code)
			assert.Empty(t, got.stdout, "before anything is evaluated")
			assert.Contains(t, got.stderr, c.want)
		})
	}
	got := run(t, "", append(args, "--output-file", "json="+dir+"/nowhere/x", "--output-file", "yaml="+dir+"/y")...)
	assert.Equal(t, exitError, got.code)
	assert.NotEmpty(t, got.stdout, "the other outputs are written")
	assert.FileExists(t, dir+"/y")
	assert.Contains(t, got.stderr, "write --output-file json="+dir+"/nowhere/x")
}

func TestJobSummary(t *testing.T) {
	summary := filepath.Join(t.TempDir(), "summary.md")
	require.NoError(t, os.WriteFile(summary, []byte("# Earlier\n"), 0o600))
	t.Setenv(jobSummary, summary)
	args := append([]string{"check", "-o", "github"}, deniedChange(t)...)
	got := run(t, "", args...)
	assert.Contains(t, got.stdout, "::error ")
	text, err := os.ReadFile(summary)
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(string(text), "# Earlier\n"), "it is added")
	assert.Contains(t, string(text), "OverrideRemoved")

	run(t, "", append([]string{"check", "--output-file", "github=" + filepath.Join(t.TempDir(), "log")}, deniedChange(t)...)...)
	again, err := os.ReadFile(summary)
	require.NoError(t, err)
	assert.Equal(t, string(text), string(again), "not for a file")

	t.Setenv(jobSummary, t.TempDir())
	got = run(t, "", args...)
	assert.Equal(t, exitError, got.code)
	assert.Contains(t, got.stderr, "write the job summary")
}

// No value of a policy is in any output with --redact-values, and all are without it.
func TestRedactValues(t *testing.T) {
	const secret = "sEcReT-4711"
	content := "rules: {authentication: {sso: {value: " + secret + "}}, authorization: {a: {value: 9, note: " + secret + "}}}"
	limit := authOn("Gateway", "infra", "limit", "a", `overrides: {strategy: merge, when: "spec.rules.authorization.a.note == '`+secret+`'", rules: {authorization: {a: {value: `+secret+`}}}}`)
	constraint := `{apiVersion: overrule.dev/v1alpha1, kind: ClusterPolicyConstraint, metadata: {name: few}, spec: {policyKind: {group: kuadrant.io, kind: AuthPolicy}, rules: [{path: rules.authentication.sso.value, enum: [x]}]}}`
	base := []string{"gateways.yaml", twoGateways, "route.yaml", routeOn("a"), "limit.yaml", limit, "constraint.yaml", constraint}
	from, to := revision(t, base...), revision(t, append(base, "shop.yaml", authOn("HTTPRoute", "app", "shop", "shop", content))...)
	for _, format := range reportFormats {
		for _, command := range [][]string{{"check", "--from", from, "--to", to}, {"diff", "--from", from, "--to", to}, {"violations", "-f", to}} {
			if command[0] == "diff" && !slices.Contains(changeFormats, format) {
				continue
			}
			got := run(t, "", append(command, "-o", string(format), "--redact-values")...)
			require.NotEqual(t, exitError, got.code, got.stderr)
			assert.NotContains(t, got.stdout+got.stderr, secret, "%s -o %s", command[0], format)
			assert.Contains(t, got.stdout, "shop", "%s -o %s: names are shown", command[0], format)
		}
	}
	got := run(t, "", "check", "--from", from, "--to", to)
	assert.Contains(t, got.stdout, secret, "the messages have it otherwise")
	got = run(t, "", "diff", "--from", from, "--to", to, "--redact-values")
	assert.Contains(t, got.stdout, "+ rules.authentication.sso = (redacted)  from AuthPolicy app/shop")
	got = run(t, "", "diff", "--from", from, "--to", to, "--redact-values", "-o", "markdown")
	assert.Contains(t, got.stdout, "+ rules.authentication.sso = (redacted)  from AuthPolicy app/shop", "null would be another value")
}

func TestRedactedValuesAreInNoWarning(t *testing.T) {
	const secret = "sEcReT-4711"
	definition := "{apiVersion: overrule.dev/v1alpha1, kind: PolicyProfile, metadata: {name: own}, spec: {group: example.com, kind: Own, class: inherited, targets: {fields: [targetRef]}}}\n" + crd("owns", "example.com", "Own", `, versions: [{name: v1, served: true, storage: true,
  schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {color: {type: string, enum: [red]}}}}}}}]`)
	invalid := "{apiVersion: example.com/v1, kind: Own, metadata: {name: own}, spec: {color: " + secret + "}}"
	from, to := revision(t, "crd.yaml", definition), revision(t, "crd.yaml", definition, "own.yaml", invalid)
	got := run(t, "", "diff", "--from", from, "--to", to, "--redact-values")
	assert.NotContains(t, got.stdout+got.stderr, secret)
	assert.Contains(t, got.stderr, "Own default/own: details are omitted")
	got = run(t, "", "diff", "--from", from, "--to", to)
	assert.Contains(t, got.stderr, `spec.color: Unsupported value: "`+secret+`"`)

	for _, command := range []string{"check", "diff"} {
		got = run(t, invalid, command, "-f", "-", "--against", to, "--redact-values")
		assert.NotContains(t, got.stdout+got.stderr, secret, command)
		assert.Contains(t, got.stderr, "own.yaml:1:71: Own own: details are omitted", command)
	}
}
