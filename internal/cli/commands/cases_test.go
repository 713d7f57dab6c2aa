package commands

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/test/cases"
)

// limits are the arguments for the limits and rights of a case.
func limits(c *cases.Case) []string {
	return []string{
		"check", "-o", "json", "--max-matches", strconv.Itoa(c.MaxMatches), "--blast-radius-limit", strconv.Itoa(c.BlastRadiusLimit),
		"--may-override=" + strconv.FormatBool(c.MayOverride),
	}
}

// check returns the verdicts of test/cases, as all other ways to evaluate a change.
func TestCheckCases(t *testing.T) {
	for _, c := range cases.Load(t) {
		t.Run(c.File, func(t *testing.T) {
			var changed []cases.Object
			code := exitOK
			for _, change := range c.Changes {
				changed = append(changed, change.Object)
				if !change.Verdict.Allowed {
					code = exitNegative
				}
			}
			args := append(limits(&c), "--against", manifests(t, c.Against), "-f", manifests(t, changed))
			if c.Changes[0].Operation == "DELETE" {
				args = append(args, "--delete")
			}
			got := run(t, "", args...)
			require.Equal(t, code, got.code, "%s\n%s\n%s", c.Name, got.stdout, got.stderr)
			verdicts := decode[api.VerdictList](t, got.stdout)
			require.Len(t, verdicts.Items, len(c.Changes), c.Name)
			for i, change := range c.Changes {
				compareVerdict(t, change, verdicts.Items[i])
			}
		})
	}
}

// The change from one revision to another has the verdict of the same change by itself, but
// for warnings that the object had before.
func TestCheckCasesAsRevisions(t *testing.T) {
	for _, c := range cases.Load(t) {
		if len(c.Changes) > 1 {
			continue // the order may differ
		}
		t.Run(c.File, func(t *testing.T) {
			change := c.Changes[0]
			var after []cases.Object
			for _, o := range c.Against {
				if o.GroupVersionKind().GroupKind() != change.Object.GroupVersionKind().GroupKind() ||
					o.GetNamespace() != change.Object.GetNamespace() || o.GetName() != change.Object.GetName() {
					after = append(after, o)
				}
			}
			if change.Operation != "DELETE" {
				after = append(after, change.Object)
			}
			got := run(t, "", append(limits(&c), "--from", manifests(t, c.Against), "--to", manifests(t, after))...)
			require.NotEqual(t, exitError, got.code, got.stderr)
			items := decode[api.VerdictList](t, got.stdout).Items
			require.NotEmpty(t, items, c.Name)
			verdict := items[0]
			want := change.Verdict
			assert.Equal(t, want.Allowed, verdict.Allowed, "%s: %+v", c.Name, verdict)
			assert.Equal(t, want.Reasons, cases.Of(verdict.Reasons, want.Reasons))
			assert.Equal(t, want.Changes, verdict.Changes)
			for _, w := range cases.Of(verdict.Warnings, nil) {
				w.Says = nil
				assert.True(t, slices.ContainsFunc(want.Warnings, func(f cases.Finding) bool { f.Says = nil; return reflect.DeepEqual(f, w) }), "%+v", w)
			}
		})
	}
}

// check gives the verdicts of the rows of test/cases/guardrails, with and without the right
// to override.
func TestCheckGuardrails(t *testing.T) {
	for _, r := range cases.Guardrails(t) {
		if r.AdmissionOnly {
			continue
		}
		t.Run(r.File+"/"+r.Name, func(t *testing.T) {
			if deletions := r.Holds(); deletions != nil {
				assert.True(t, slices.ContainsFunc(deletions, func(c cases.Change) bool {
					return !checkChange(t, r.Against, &c).Allowed
				}), "no override holds before the write")
			}
			against := r.Against
			for i := range r.Steps {
				w := &r.Steps[i]
				got := checkChange(t, against, &w.Change)
				assert.Empty(t, w.Mismatch(got, false), "step %d: %+v", i, got)
				if w.Overridable() {
					got = checkChange(t, against, &w.Change, "--may-override")
					assert.Empty(t, w.Mismatch(got, true), "step %d with the right to override: %+v", i, got)
				}
				against = w.After(against)
			}
		})
	}
}

// checkChange returns the verdict on a change.
func checkChange(t *testing.T, against []cases.Object, c *cases.Change, args ...string) api.Verdict {
	t.Helper()
	args = append([]string{"check", "-o", "json", "--against", manifests(t, against), "-f", manifests(t, []cases.Object{c.Object})}, args...)
	if c.Operation == "DELETE" {
		args = append(args, "--delete")
	}
	got := run(t, "", args...)
	require.NotEqual(t, exitError, got.code, got.stderr)
	verdicts := decode[api.VerdictList](t, got.stdout)
	require.Len(t, verdicts.Items, 1, got.stderr)
	return verdicts.Items[0]
}

func compareVerdict(t *testing.T, want cases.Change, got api.Verdict) {
	t.Helper()
	assert.Equal(t, want.Operation, got.Operation)
	assert.Equal(t, api.Ref{
		Group: want.Object.GroupVersionKind().Group, Kind: want.Object.GetKind(),
		Namespace: want.Object.GetNamespace(), Name: want.Object.GetName(),
	}, got.Object)
	assert.Equal(t, want.Verdict, cases.Want{
		Allowed:  got.Allowed,
		Reasons:  cases.Of(got.Reasons, want.Verdict.Reasons),
		Warnings: cases.Of(got.Warnings, want.Verdict.Warnings),
		Changes:  got.Changes,
	}, "%+v", got)
}

// manifests writes objects to a file, each as a document.
func manifests(t *testing.T, objects []cases.Object) string {
	t.Helper()
	var text strings.Builder
	for _, o := range objects {
		data, err := yaml.Marshal(o.Object)
		require.NoError(t, err)
		text.WriteString("---\n")
		text.Write(data)
	}
	return write(t, "objects.yaml", text.String())
}

// With the enforcement warn everything is allowed, with the same reasons.
func TestCheckEnforcementWarn(t *testing.T) {
	all := cases.Load(t)
	i := slices.IndexFunc(all, func(c cases.Case) bool { return c.File == "unset-by-prefix-and-by-name" })
	require.GreaterOrEqual(t, i, 0)
	c := all[i]
	got := run(t, "", "check", "--enforcement=warn", "-o", "json", "--against", manifests(t, c.Against),
		"-f", manifests(t, []cases.Object{c.Changes[0].Object, c.Changes[1].Object}))
	require.Equal(t, exitOK, got.code, got.stderr)
	for i, v := range decode[api.VerdictList](t, got.stdout).Items {
		assert.True(t, v.Allowed)
		assert.Equal(t, c.Changes[i].Verdict.Reasons, cases.Of(v.Reasons, nil))
	}
	got = run(t, "", "check", "--enforcement=warn", "--against", manifests(t, c.Against), "-f", manifests(t, []cases.Object{c.Changes[0].Object}))
	assert.Equal(t, exitOK, got.code)
	assert.Contains(t, got.stdout, "CREATE AuthPolicy app/route: allowed")
	assert.Contains(t, got.stdout, "would be denied UnsetOverride: ")
}
