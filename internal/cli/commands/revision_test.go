package commands

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
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
	base := []string{"gateways.yaml", twoGateways, "route.yaml", routeOn("a"), "auth.yaml", overrideOn("a", "sso")}
	profile := `{apiVersion: overrule.dev/v1alpha1, kind: PolicyConstraint, metadata: {namespace: app, name: none}, spec: {policyKind: {group: kuadrant.io, kind: AuthPolicy}, validations: [{expression: "true"}]}}`
	for name, c := range map[string]struct {
		from, to []string
		args     []string
		want     []string
		code     int
	}{
		"objects are created in the order of their dependencies, whatever the names of the files": {
			nil, []string{
				"1.yaml", authOn("HTTPRoute", "app", "shop", "shop", "rules: {authentication: {a: {value: 1}}}"), "2.yaml", routeOn("a"), "3.yaml", twoGateways,
				"4.yaml", "{apiVersion: v1, kind: Namespace, metadata: {name: app}}", "5.yaml", profile,
			}, nil,
			[]string{
				"CREATE Namespace app", "CREATE PolicyConstraint app/none", "CREATE GatewayClass c", "CREATE Gateway infra/a", "CREATE Gateway infra/b",
				"CREATE HTTPRoute app/shop", "CREATE AuthPolicy app/shop",
			}, exitOK,
		},
		"deletions come last, in the reverse order": {
			base, nil, []string{"--may-override"},
			[]string{
				"DELETE AuthPolicy infra/sso OverrideRemoved", "DELETE HTTPRoute app/shop", "DELETE Gateway infra/a", "DELETE Gateway infra/b", "DELETE GatewayClass c",
			}, exitOK,
		},
		"the removal of an override is denied": {
			base, base[:4], nil,
			[]string{"DELETE AuthPolicy infra/sso denied:OverrideRemoved"}, exitNegative,
		},
		"equal revisions make no change, in whatever files": {
			base, []string{"all.yaml", routeOn("a") + "---\n" + twoGateways + "---" + overrideOn("a", "sso")}, nil, nil, exitOK,
		},
		"what an API server sets is no change": {
			base, append([]string{"route.yaml", strings.Replace(routeOn("a"), "name: shop}", `name: shop, uid: u, resourceVersion: "7", generation: 2}`+"\nstatus: {parents: []}", 1)}, append(base[:2:2], base[4:]...)...), nil,
			nil, exitOK,
		},
		"an override that moves to a new name is taken out of the old policy": {
			base, append(base[:4:4], "auth.yaml", overrideOn("a", "sso-2")), nil,
			[]string{"CREATE AuthPolicy infra/sso-2 Overridden", "DELETE AuthPolicy infra/sso denied:OverrideRemoved"}, exitNegative,
		},
		"a route that moves to a gateway whose policy comes later is allowed in another order": {
			base, []string{"gateways.yaml", twoGateways, "route.yaml", routeOn("b"), "auth.yaml", overrideOn("a", "sso"), "b.yaml", overrideOn("b", "sso-b")}, nil,
			[]string{"UPDATE HTTPRoute app/shop ApplyOrder", "CREATE AuthPolicy infra/sso-b"}, exitOK,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, result := compared(t, revision(t, c.from...), revision(t, c.to...), c.args...)
			assert.Equal(t, c.want, got)
			assert.Equal(t, c.code, result.code)
		})
	}
}

func TestOnlyWhatTheChangeIntroducesIsReported(t *testing.T) {
	overridden := authOn("HTTPRoute", "app", "shop", "shop", "rules: {authentication: {sso: {value: 2}}}")
	base := []string{"gateways.yaml", twoGateways, "route.yaml", routeOn("a"), "auth.yaml", overrideOn("a", "sso"), "shop.yaml", overridden, "lost.yaml", authOn("HTTPRoute", "app", "lost", "nowhere", "rules: {authentication: {a: {value: 1}}}")}
	from := revision(t, base...)

	labelled := strings.Replace(overridden, "name: shop}", "name: shop, labels: {team: shop}}", 1)
	got, _ := compared(t, from, revision(t, append(base, "shop.yaml", labelled)...))
	assert.Equal(t, []string{"UPDATE AuthPolicy app/shop"}, got, "its rule had no effect before")

	more := strings.Replace(overridden, "rules: {", "rules: {authorization: {x: {value: 3}}, ", 1)
	got, _ = compared(t, from, revision(t, append(base, "shop.yaml", more)...))
	assert.Equal(t, []string{"UPDATE AuthPolicy app/shop"}, got, "nor is it repeated beside rules that have an effect")

	got, _ = compared(t, from, revision(t, append(base, "sso.yaml", authOn("Gateway", "infra", "more", "a", "overrides: {strategy: merge, rules: {authorization: {x: {value: 1}}}}"), "shop.yaml", strings.Replace(overridden, "rules: {", "rules: {authorization: {x: {value: 2}}, ", 1))...))
	assert.Equal(t, []string{"UPDATE AuthPolicy app/shop", "CREATE AuthPolicy infra/more BlastRadius Overridden"}, got)
}

func TestUnknownFieldsOfBothRevisionsAreNotReported(t *testing.T) {
	route := func(fields string) string {
		return twoGateways + "---" + routeOn("a") + "  " + fields + "\n"
	}
	from := revision(t, "all.yaml", route("hostname: a.example.com"))
	got, _ := compared(t, from, revision(t, "all.yaml", route("hostname: b.example.com")))
	assert.Equal(t, []string{"UPDATE HTTPRoute app/shop"}, got, "it was unknown before")
	got, _ = compared(t, from, revision(t, "all.yaml", route("hostname: a.example.com\n  hosts: [a]")))
	assert.Equal(t, []string{"UPDATE HTTPRoute app/shop UnknownField"}, got, "but another one was not")
}

func TestAnInvalidManifestBeforeTheChangeCanBeRepaired(t *testing.T) {
	broken := strings.Replace(routeOn("a"), "parentRefs: [{namespace: infra, name: a}]", "parentRefs: 7", 1)
	got, result := compared(t, revision(t, "all.yaml", twoGateways+"---"+broken), revision(t, "all.yaml", twoGateways+"---"+routeOn("a")))
	assert.Equal(t, []string{"CREATE HTTPRoute app/shop"}, got, "the API server does not have it")
	assert.Equal(t, exitOK, result.code)
	got, result = compared(t, revision(t, "all.yaml", twoGateways+"---"+broken), revision(t, "all.yaml", twoGateways))
	assert.Empty(t, got)
	assert.Equal(t, exitOK, result.code)
	got, result = compared(t, revision(t, "all.yaml", twoGateways+"---"+routeOn("a")), revision(t, "all.yaml", twoGateways+"---"+broken))
	assert.Equal(t, []string{"UPDATE HTTPRoute app/shop denied:SchemaInvalid"}, got)
	assert.Equal(t, exitNegative, result.code)
}

// Manifests of a kind that is a policy kind by a PolicyProfile, and has a constraint.
const (
	sizedProfile = `
apiVersion: overrule.dev/v1alpha1
kind: PolicyProfile
metadata: {name: own}
spec: {group: example.com, kind: Own, class: inherited, targets: {fields: [targetRef]}}
`
	smallSizes = `
apiVersion: overrule.dev/v1alpha1
kind: ClusterPolicyConstraint
metadata: {name: small}
spec:
  policyKind: {group: example.com, kind: Own}
  rules: [{path: size, max: 5}]
`
)

func sizedPolicy(size int) string {
	return fmt.Sprintf(`
apiVersion: example.com/v1
kind: Own
metadata: {namespace: app, name: own}
spec: {targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop}, size: %d}
`, size)
}

func TestRevisionsWithKindsAndNamespaces(t *testing.T) {
	base := twoGateways + "---" + routeOn("a") + "---"
	namespace := "\n{apiVersion: v1, kind: Namespace, metadata: {name: app}}\n"
	for name, c := range map[string]struct {
		from, to string
		want     []string
		code     int
	}{
		"a constraint is created after the profile of its kind": {
			base, base + sizedPolicy(4) + "---" + smallSizes + "---" + sizedProfile,
			[]string{"CREATE PolicyProfile own", "CREATE ClusterPolicyConstraint small", "CREATE Own app/own"}, exitOK,
		},
		"a policy that is allowed once its kind is no policy kind returns a warning about the order": {
			base + smallSizes + "---" + sizedProfile, base + smallSizes + "---" + sizedPolicy(6),
			[]string{"CREATE Own app/own ApplyOrder NotRead", "DELETE PolicyProfile own"}, exitOK,
		},
		"a policy that is denied stays denied if its namespace is deleted by the same change": {
			base + smallSizes + "---" + sizedProfile + "---" + namespace, base + smallSizes + "---" + sizedProfile + "---" + sizedPolicy(6),
			[]string{"CREATE Own app/own denied:RequirementUnmet", "DELETE Namespace app"}, exitNegative,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, result := compared(t, revision(t, "all.yaml", c.from), revision(t, "all.yaml", c.to))
			assert.Equal(t, c.want, got)
			assert.Equal(t, c.code, result.code, result.stderr)
		})
	}
}

// Rules that a step takes away and another one gives back are not lost.
func TestRulesThatAreGivenBackAreNotLost(t *testing.T) {
	policy := func(name, target, rules string) string {
		return `---
{apiVersion: gateway.envoyproxy.io/v1alpha1, kind: SecurityPolicy, metadata: {namespace: infra, name: ` + name +
			`}, spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, ` + target + `}], ` + rules + "}}\n"
	}
	const jwt, sso = "jwt: {providers: [{name: a}]}", "jwt: {providers: [{name: b}]}"
	gateways := strings.Replace(twoGateways, "istio.io/gateway-controller", "gateway.envoyproxy.io/gatewayclass-controller", 1) + "---" + routeOn("a")
	renamed := strings.Replace(gateways, "name: http,", "name: web,", 1)
	for name, c := range map[string]struct {
		from, to string
		want     []string
		lost     bool
	}{
		"a policy that is renamed": {
			gateways + policy("old", "name: a", jwt), gateways + policy("new", "name: a", jwt),
			[]string{"CREATE SecurityPolicy infra/new ApplyOrder BlastRadius", "DELETE SecurityPolicy infra/old"}, false,
		},
		"a policy in place of another, with another value": {
			gateways + policy("old", "name: a", jwt), gateways + policy("new", "name: a", sso),
			[]string{"CREATE SecurityPolicy infra/new ApplyOrder BlastRadius", "DELETE SecurityPolicy infra/old RulesLost"}, true,
		},
		"a section that is renamed, and the policy follows": {
			gateways + policy("own", "name: a, sectionName: http", jwt), renamed + policy("own", "name: a, sectionName: web", jwt),
			[]string{"UPDATE Gateway infra/a", "UPDATE SecurityPolicy infra/own BlastRadius"}, false,
		},
		"a section that is renamed, and the policy does not follow": {
			gateways + policy("own", "name: a, sectionName: http", jwt), renamed + policy("own", "name: a, sectionName: http", jwt),
			[]string{"UPDATE Gateway infra/a RulesLost"}, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			from, to := revision(t, "all.yaml", c.from), revision(t, "all.yaml", c.to)
			got, _ := compared(t, from, to)
			assert.Equal(t, c.want, got)
			assert.Equal(t, c.lost, strings.Contains(run(t, "", "check", "--from", from, "--to", to).stdout, "1 path loses jwt"))
		})
	}
}

func TestOrderIsNoBypass(t *testing.T) {
	constraint := `
apiVersion: overrule.dev/v1alpha1
kind: ClusterPolicyConstraint
metadata: {name: few}
spec:
  policyKind: {group: kuadrant.io, kind: AuthPolicy}
  rules: [{path: rules.authorization.*.value, max: 5}]
`
	open := authOn("HTTPRoute", "app", "open", "shop", "rules: {authorization: {a: {value: 6}}}")
	got, result := compared(t, revision(t, "gateways.yaml", twoGateways, "route.yaml", routeOn("a")), revision(t, "gateways.yaml", twoGateways, "route.yaml", routeOn("a"), "new.yaml", constraint+"---"+open))
	assert.Equal(t, exitNegative, result.code)
	assert.Contains(t, strings.Join(got, "\n"), "CREATE AuthPolicy app/open denied:RequirementUnmet", "although it is allowed before the constraint is there")

	renamed := func(listener string) string {
		return revision(t, "gateways.yaml", strings.Replace(twoGateways, "name: http", "name: "+listener, 1), "route.yaml", routeOn("a"),
			"sso.yaml", strings.Replace(overrideOn("a", "sso"), "name: a}", "name: a, sectionName: "+listener+"}", 1))
	}
	got, result = compared(t, renamed("http"), renamed("web"))
	assert.Equal(t, exitNegative, result.code)
	assert.Equal(t, []string{"UPDATE Gateway infra/a denied:OverrideEvaded", "UPDATE AuthPolicy infra/sso denied:OverrideEvaded"}, got, "no order works")
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

func TestObjectsOfAKindThatIsNoLongerServedAreDenied(t *testing.T) {
	definition := `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: owns.example.com, labels: {gateway.networking.k8s.io/policy: direct}}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Own, plural: owns}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`
	policy := "---\n{apiVersion: example.com/v1, kind: Own, metadata: {namespace: app, name: new}, spec: {targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: shop}, size: 1}}\n"
	base := twoGateways + "---" + routeOn("a")
	got, result := compared(t, revision(t, "all.yaml", base+definition), revision(t, "all.yaml", base+strings.Replace(definition, "served: true", "served: false", 1)+policy))
	assert.Equal(t, exitNegative, result.code, result.stdout)
	assert.Contains(t, got, "CREATE Own app/new denied:SchemaInvalid")
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
	require.Equal(t, []string{"UPDATE AuthPolicy app/shop ApplyOrder", "CREATE AuthPolicy infra/sso BlastRadius Overridden"}, lines)
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
