package commands

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/test/tables"
)

// Manifests of the tests of two revisions.
const (
	twoGateways = `{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: c}, spec: {controllerName: istio.io/gateway-controller}}
---
{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: infra, name: a}, spec: {gatewayClassName: c, listeners: [{name: http, protocol: HTTP, port: 80, allowedRoutes: {namespaces: {from: All}}}]}}
---
{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {namespace: infra, name: b}, spec: {gatewayClassName: c, listeners: [{name: http, protocol: HTTP, port: 81, allowedRoutes: {namespaces: {from: All}}}]}}
`
	denyingAuth = `{sso: {value: 1}}`
)

func routeOn(gateway string) string {
	return fmt.Sprintf(`
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: app, name: shop}
spec:
  parentRefs: [{namespace: infra, name: %s}]
  rules: [{name: all}]
`, gateway)
}

func authOn(kind, namespace, name, target, content string) string {
	return fmt.Sprintf(`
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {namespace: %s, name: %s}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: %s, name: %s}
  %s
`, namespace, name, kind, target, content)
}

func overrideOn(gateway, name string) string {
	return authOn("Gateway", "infra", name, gateway, "overrides: {strategy: merge, rules: {authentication: "+denyingAuth+"}}")
}

// revision writes the files of a revision, by name and content, and returns its folder.
func revision(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(files); i += 2 {
		file := filepath.Join(dir, files[i])
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o750))
		require.NoError(t, os.WriteFile(file, []byte(files[i+1]), 0o600))
	}
	return dir
}

// compared returns the verdicts of check on two revisions: their lines, with the codes of
// the reasons and warnings.
func compared(t *testing.T, from, to string, args ...string) (lines []string, got result) {
	t.Helper()
	got = run(t, "", append([]string{"check", "-o", "json", "--from", from, "--to", to}, args...)...)
	require.NotEqual(t, exitError, got.code, got.stderr)
	for _, v := range decode[api.VerdictList](t, got.stdout).Items {
		line := fmt.Sprintf("%s %s", v.Operation, v.Object)
		for _, r := range v.Reasons {
			line += " denied:" + string(r.Code)
		}
		for _, r := range v.Warnings {
			line += " " + string(r.Code)
		}
		lines = append(lines, line)
	}
	return lines, got
}

func TestRevisionsAreCompared(t *testing.T) {
	for name, c := range tables.Read[struct {
		Objects []json.RawMessage // that cases have in common
		Cases   map[string]struct {
			From, To []json.RawMessage
			Args     []string
			Want     []string

			Says, Omits []string
		}
	}](t, "testdata/tables/revisions.yaml").Cases {
		t.Run(name, func(t *testing.T) {
			files := func(objects []json.RawMessage) string {
				var out []string
				for i, o := range objects {
					out = append(out, fmt.Sprintf("%02d.yaml", i), string(o))
				}
				return revision(t, out...)
			}
			got, result := compared(t, files(c.From), files(c.To), c.Args...)
			assert.Equal(t, c.Want, got)
			code := exitOK
			if strings.Contains(strings.Join(c.Want, ""), " denied:") {
				code = exitNegative
			}
			assert.Equal(t, code, result.code, result.stderr)
			for _, text := range c.Says {
				assert.Contains(t, result.stdout, text)
			}
			for _, text := range c.Omits {
				assert.NotContains(t, result.stdout, text)
			}
		})
	}
}

func TestRevisionsThatCannotBeCompared(t *testing.T) {
	full, empty := revision(t, "gateways.yaml", twoGateways), t.TempDir()
	broken := revision(t, "a.yaml", "kind: [", "b.yaml", "{{ .Values.x }}: 1")
	assertErrors(t, []string{"check"}, map[string]errorCase{
		"one revision":                    {[]string{"--from", full}, exitError, errOneRevision.Error()},
		"the other one":                   {[]string{"--to", full}, exitError, errOneRevision.Error()},
		"revisions and a change":          {[]string{"--from", full, "--to", full, "-f", full}, exitError, errRevisionFlags.Error()},
		"revisions and a deletion":        {[]string{"--from", full, "--to", full, "--delete"}, exitError, errRevisionFlags.Error()},
		"standard input for both":         {[]string{"--from", "-", "--to", "-"}, exitError, "invalid --from and --to: only one of them can be - for stdin"},
		"revisions and existing objects":  {[]string{"--from", full, "--to", full, "--against", full}, exitError, errRevisionFlags.Error()},
		"no change at all":                {nil, exitError, errNoChange.Error()},
		"a folder that does not exist":    {[]string{"--from", full + "/nowhere", "--to", full}, exitError, "nowhere: file does not exist; check the path"},
		"a second one that does not":      {[]string{"--from", full, "--to", full + "/nowhere"}, exitError, "nowhere: file does not exist; check the path"},
		"two empty folders":               {[]string{"--from", empty, "--to", empty}, exitError, "--from and --to: no manifests found"},
		"files that cannot be read":       {[]string{"--from", full, "--to", broken}, exitError, "a.yaml:1 (document 1): invalid manifest"},
		"an object that is defined twice": {[]string{"--from", full, "--to", revision(t, "a.yaml", twoGateways, "b.yaml", twoGateways)}, exitError, "duplicate object"},
	})
}

func TestSourcesThatAreNotRendered(t *testing.T) {
	kustomization := revision(t, "gateways.yaml", twoGateways, "kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [gateways.yaml]\n")
	want := "kustomization.yaml is a kustomization, and is not applied: render it first with kubectl kustomize"
	for _, args := range [][]string{{"check", "--from", kustomization, "--to", kustomization}, {"check", "-f", kustomization, "--against", kustomization}, {"violations", "-f", kustomization}} {
		got := run(t, "", args...)
		assert.Equal(t, exitOK, got.code, got.stderr)
		assert.Contains(t, got.stderr, "warning: "+kustomization+"/"+want)
	}
	for name, c := range map[string]struct{ file, text, want string }{
		"a kustomization without a kind": {"kustomization.yml", "resources: [x.yaml]", "kind is required; this is a kustomization: render it first with kubectl kustomize"},
		"a chart":                        {"Chart.yaml", "apiVersion: v2\nname: x", "kind is required; this looks like a file of a Helm chart: render it first with helm template"},
		"values of a chart":              {"values.yaml", "name: x", "kind is required; this looks like a file of a Helm chart"},
		"a template that is valid YAML":  {"route.yaml", strings.Replace(routeOn("a"), "name: shop", "name: '{{ .Values.name }}'", 1), `"{{ .Values.name }}" looks like a template: render it first`},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, "", "violations", "-f", revision(t, c.file, c.text))
			assert.Equal(t, exitError, got.code)
			assert.Contains(t, got.stderr, c.want)
		})
	}
}

func TestUnlikeRevisionsAreReported(t *testing.T) {
	full, empty := revision(t, "gateways.yaml", twoGateways), t.TempDir()
	got := run(t, "", "check", "--from", empty, "--to", full)
	assert.Equal(t, exitOK, got.code, got.stderr)
	assert.Contains(t, got.stderr, "warning: --from: "+empty+": no manifests found")
	assert.Contains(t, run(t, "", "check", "--from", empty, "--to", full, "-o", "markdown").stdout, "\n> --from has no manifests\n", "without a path, which may be a temporary one")

	got = run(t, "", "check", "--from", full, "--to", revision(t, "route.yaml", routeOn("a")))
	assert.Contains(t, got.stderr, "warning: no object is in both --from and --to: the change deletes 3 and creates 1")

	got = run(t, "", "check", "--from", full, "--to", full)
	assert.Equal(t, result{exitOK, "", "no difference between --from and --to affects effective policies\n"}, got)
}

func TestDiffOfRevisionsShowsEachPathOnce(t *testing.T) {
	gatewayPolicy := authOn("Gateway", "infra", "sso", "a", "defaults: {strategy: merge, rules: {authentication: {sso: {value: 1}}}}")
	routePolicy := authOn("HTTPRoute", "app", "shop", "shop", "rules: {authentication: {sso: {value: 2}}}")
	from := revision(t, "gateways.yaml", twoGateways, "route.yaml", routeOn("a"), "auth.yaml", gatewayPolicy)
	to := revision(t, "gateways.yaml", twoGateways, "route.yaml", routeOn("a"), "auth.yaml", routePolicy)
	got := run(t, "", "diff", "--from", from, "--to", to, "-o", "json")
	require.Equal(t, exitOK, got.code, got.stderr)
	items := decode[api.ChangeList](t, got.stdout).Items
	require.Len(t, items, 1, "the deletion of the default changes nothing, once the route has its own")
	assert.Equal(t, []api.RuleChange{{
		Rule:   "rules.authentication.sso",
		Before: &api.RuleValue{Value: map[string]any{"value": 1.0}, From: authRef("infra", "sso"), Block: "defaults"},
		After:  &api.RuleValue{Value: map[string]any{"value": 2.0}, From: authRef("app", "shop"), Block: "bare"},
	}}, items[0].Rules)

	back := run(t, "", "diff", "--from", from, "--to", from)
	assert.Equal(t, result{exitOK, "", "no difference between --from and --to affects effective policies\n"}, back)
}

// A report shows the changes in the order in which they took effect: here the update of the
// route's policy, which is denied before the default of the gateway is there.
func TestReportsShowTheNetChangeOfAnotherOrder(t *testing.T) {
	base := twoGateways + "---" + routeOn("a") + `---
apiVersion: overrule.dev/v1alpha1
kind: ClusterPolicyConstraint
metadata: {name: sso}
spec:
  policyKind: {group: kuadrant.io, kind: AuthPolicy}
  rules: [{path: rules.authentication.sso, required: true}]
---`
	from := revision(t, "all.yaml", base+authOn("HTTPRoute", "app", "shop", "shop", "rules: {authentication: {sso: {value: 1}}, authorization: {a: {value: 1}}}"))
	to := revision(t, "all.yaml", base+authOn("HTTPRoute", "app", "shop", "shop", "rules: {authorization: {a: {value: 1}}}")+
		"---"+authOn("Gateway", "infra", "sso", "a", "defaults: {strategy: merge, rules: {authentication: {sso: {value: 2}}, authorization: {z: {value: 1}}}}"))
	lines, _ := compared(t, from, to)
	require.Equal(t, []string{"UPDATE AuthPolicy app/shop ApplyOrder", "CREATE AuthPolicy infra/sso BlastRadius"}, lines)
	got := run(t, "", "check", "--from", from, "--to", to, "-o", "markdown")
	assert.Contains(t, got.stdout, `
- rules.authentication.sso = {"value":1}  from AuthPolicy app/shop
+ rules.authentication.sso = {"value":2}  from AuthPolicy infra/sso (defaults)
+ rules.authorization.z = {"value":1}  from AuthPolicy infra/sso (defaults)
`)
}

func authRef(namespace, name string) api.Ref {
	return api.Ref{Group: "kuadrant.io", Kind: "AuthPolicy", Namespace: namespace, Name: name}
}

func TestNotesOfRevisions(t *testing.T) {
	namespace := "---\n{apiVersion: v1, kind: Namespace, metadata: {name: app}}\n"
	configMap := "{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}"
	custom := "---\n" + authOn("HTTPRoute", "app", "shop", "shop", "rules: {authentication: {a: {value: 1}}}")
	definition := "---\n" + crd("authpolicies", "kuadrant.io", "AuthPolicy", "")
	for name, c := range map[string]struct{ from, to, want string }{
		"a change that deletes everything":                     {twoGateways, configMap, "no object is in both --from and --to: the change deletes 3 and creates 0"},
		"a deleted namespace with objects":                     {twoGateways + namespace + "---" + routeOn("a"), twoGateways + "---" + routeOn("a"), "the change deletes Namespace app, and with it 1 objects that --to has there"},
		"a policy of a kind without a definition":              {twoGateways, twoGateways + custom, "fields of AuthPolicy.kuadrant.io are not validated"},
		"no note on a policy of a kind with a definition":      {twoGateways + definition, twoGateways + definition + custom, ""},
		"no note on a namespace whose objects are deleted too": {twoGateways + namespace + "---" + routeOn("a"), twoGateways, ""},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"check", "--may-override", "--from", revision(t, "all.yaml", c.from), "--to", revision(t, "all.yaml", c.to)}
			got, markdown := run(t, "", args...), run(t, "", append(args, "-o", "markdown")...)
			require.Equal(t, exitOK, got.code, got.stderr)
			if c.want == "" {
				assert.NotContains(t, got.stderr, "warning: ")
				assert.NotContains(t, markdown.stdout, "\n> ")
				return
			}
			assert.Contains(t, got.stderr, "warning: "+c.want)
			assert.Contains(t, markdown.stdout, "\n> "+strings.SplitN(c.want, " ", 2)[0], "a reader of the report sees it")
		})
	}
}
