package commands

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cache"
	"overrule.dev/overrule/internal/cli/manifest"
	"overrule.dev/overrule/internal/snapshot"
)

const undatedBase = `
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: c}
spec: {controllerName: gateway.envoyproxy.io/gatewayclass-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {namespace: app, name: g}
spec: {gatewayClassName: c, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: app, name: r}
spec: {parentRefs: [{name: g}]}
`

// securityPolicy returns a policy of a kind that does not merge on one target.
func securityPolicy(name, metadata string) string {
	return "---\napiVersion: gateway.envoyproxy.io/v1alpha1\nkind: SecurityPolicy\nmetadata: {namespace: app, name: " + name + metadata + "}\n" +
		"spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: r}], cors: {allowOrigins: ['https://" + name + ".com']}}\n"
}

// misspelt is a policy with a section that its kind does not have, which is a rule of
// its own if nothing drops it.
const misspelt = `
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {namespace: app, name: p}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: toystore}
  ruls: {authentication: {a: {}}}
`

// wrongType is a route with a field of the wrong type.
const wrongType = `
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {namespace: app, name: toystore}
spec: {hostnames: 1}
`

func TestValidateModes(t *testing.T) {
	const unknown = `AuthPolicy app/p: unknown field "spec.ruls": did you mean "rules"?` + "\n"
	file := write(t, "p.yaml", misspelt)
	at := file + ":7:3: "
	for name, c := range map[string]struct {
		mode     string
		code     int
		stderr   string
		verdicts []string
	}{
		"by default": {"", exitOK, "warning: " + at + unknown, []string{"CREATE AuthPolicy p (UnknownField)"}},
		"warn":       {"--validate=warn", exitOK, "warning: " + at + unknown, []string{"CREATE AuthPolicy p (UnknownField)"}},
		"strict":     {"--validate=strict", exitError, "error: " + at + unknown, []string{"CREATE AuthPolicy p UnknownField"}},
		"true":       {"--validate=true", exitError, "error: " + at + unknown, []string{"CREATE AuthPolicy p UnknownField"}},
		"ignore":     {"--validate=ignore", exitOK, "", []string{"CREATE AuthPolicy p"}},
		"false":      {"--validate=false", exitOK, "", []string{"CREATE AuthPolicy p"}},
	} {
		t.Run(name, func(t *testing.T) {
			var mode []string
			if c.mode != "" {
				mode = []string{c.mode}
			}
			got := run(t, "", append(append(demoFiles("cluster"), "effective", "-f", file, "-f", "../../../examples/crds"), mode...)...)
			assert.Equal(t, c.code, got.code)
			if c.stderr == "" {
				assert.NotContains(t, got.stderr, "ruls")
			} else {
				assert.Contains(t, got.stderr, c.stderr)
			}
			assert.NotContains(t, got.stdout, "ruls", "the field is dropped")
			assert.Equal(t, c.verdicts, verdicts(check(t, misspelt, append(against("cluster"), mode...)...)))
		})
	}
	got := run(t, "", "effective", "--validate=maybe")
	assert.Equal(t, exitError, got.code)
	assert.Contains(t, got.stderr, `invalid value "maybe" for --validate: must be one of strict, warn, ignore, true, false`)
}

func TestRejectedObjectIsNotApplied(t *testing.T) {
	// without the route's hostnames the policy would be on a path
	policy := strings.Replace(misspelt, "ruls", "rules", 1)
	got := check(t, wrongType+"---"+policy, append(against("cluster"), "--enforcement=warn")...)
	assert.Equal(t, []string{"UPDATE HTTPRoute toystore SchemaInvalid", "CREATE AuthPolicy p"}, verdicts(got))
	assert.False(t, got[0].Allowed, "the API server rejects it, whatever the enforcement")
	assert.NotZero(t, got[1].Changes.Paths, "the route is as it was")
}

func TestDiffWarnsOfAnObjectThatIsNotApplied(t *testing.T) {
	got := run(t, wrongType, append(against("cluster"), "diff", "-f", "-")...)
	assert.Equal(t, exitOK, got.code)
	assert.Contains(t, got.stderr, `HTTPRoute app/toystore: spec.hostnames: Invalid value: "integer": spec.hostnames in body must be of type array: "integer"`)
}

func TestExistingObjectThatCannotBeDecodedIsAnError(t *testing.T) {
	got := run(t, wrongType, "effective", "-f", "-")
	assert.Equal(t, exitError, got.code)
	assert.Contains(t, got.stderr, "warning: standard input:5:8: HTTPRoute app/toystore: spec.hostnames: Invalid value: ")
	assert.Contains(t, got.stderr, "error: standard input:2 (document 1): HTTPRoute app/toystore is invalid: ")
}

func TestViolationsOfManifests(t *testing.T) {
	args := append(demoFiles("gateway-policies"), "-f", write(t, "a.yaml", wrongType+"---"+misspelt), "-f", "../../../examples/crds")
	const about = "HTTPRoute app/toystore"
	assert.Equal(t, []string{
		"Deny SchemaInvalid HTTPRoute toystore#  " + about,
		"Warn UnknownField AuthPolicy p#  AuthPolicy app/p",
	}, sortedByKind(listViolations(t, args...)))
	assert.Equal(t, []string{"Warn UnknownField AuthPolicy p#  AuthPolicy app/p"}, listViolations(t, append(args, "--fail-on=warn", "-n", "app", "--kind", "AuthPolicy", "authpolicy/p")...))
	assert.Empty(t, listViolations(t, append(args, "-n", "infra")...))
}

// sortedByKind returns violations with the routes first.
func sortedByKind(all []string) []string {
	var routes, rest []string
	for _, v := range all {
		if strings.Contains(v, " HTTPRoute ") {
			routes = append(routes, v)
		} else {
			rest = append(rest, v)
		}
	}
	return append(routes, rest...)
}

func TestTheFirstProblemsAreShown(t *testing.T) {
	var text strings.Builder
	for i := range 25 {
		fmt.Fprintf(&text, "---\napiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: r%d}\nspec: {x: 1}\n", i)
	}
	got := run(t, text.String(), "effective", "-f", "-")
	assert.Equal(t, 20, strings.Count(got.stderr, "unknown field"), got.stderr)
	assert.Contains(t, got.stderr, "warning: and 5 more problems of manifests")
}

// demoCluster is a cluster with the demo, of which the definition of AuthPolicy is read
// with get.
func demoCluster(t *testing.T, get func() (map[string]any, error)) *app {
	t.Helper()
	return &app{reader: reader{connection: connection{
		list: func(context.Context, *rest.Config) (*snapshot.View, []cache.Problem, error) {
			set, err := manifest.Read([]string{demo + "cluster.yaml"}, nil)
			require.NoError(t, err)
			kinds := manifest.NewKinds(nil)
			v, err := set.View(kinds, "default")
			return v, nil, err
		},
		stored: storedFuncs{
			getFunc:  func(api.Ref) (map[string]any, error) { return get() },
			listFunc: func(api.PolicyKind) ([]map[string]any, error) { return nil, nil },
		},
	}}}
}

func TestDefinitionsOfTheCluster(t *testing.T) {
	data, err := os.ReadFile("../../../examples/crds/kuadrant.io_authpolicies.yaml")
	require.NoError(t, err)
	var definition map[string]any
	require.NoError(t, yaml.Unmarshal(data, &definition))
	for name, c := range map[string]struct {
		definition map[string]any
		err        error
		want       []string
		stderr     string
	}{
		"are used":            {definition, nil, []string{"CREATE AuthPolicy p (UnknownField)"}, ""},
		"are absent":          {nil, errNotFound, []string{"CREATE AuthPolicy p"}, ""},
		"that cannot be read": {nil, errors.New("closed"), []string{"CREATE AuthPolicy p"}, "warning: skipping the schema of AuthPolicy.kuadrant.io on the cluster: closed"},
	} {
		t.Run(name, func(t *testing.T) {
			s := startReviewer(t, true)
			got := demoCluster(t, func() (map[string]any, error) { return c.definition, c.err }).
				exec(t, misspelt, "check", "-f", "-", "-o", "json", "--kubeconfig", s.kubeconfig(t))
			require.NotEqual(t, exitError, got.code, got.stderr)
			assert.Equal(t, c.want, verdicts(decode[api.VerdictList](t, got.stdout).Items))
			assert.Contains(t, got.stderr, c.stderr)
		})
	}
}

func TestInvalidProfileInAChangeIsDenied(t *testing.T) {
	profile := "apiVersion: overrule.dev/v1alpha1\nkind: PolicyProfile\nmetadata: {name: a}\nspec: {group: a.b, kind: A, class: %s, targets: {fields: [targetRef]}, %s: [x]}\n"
	got := check(t, fmt.Sprintf(profile, "odd", "rules"), against("cluster")...)
	assert.Equal(t, "CREATE PolicyProfile a SchemaInvalid", verdicts(got)[0])
	got = check(t, fmt.Sprintf(profile, "direct", "ruels"), against("cluster")...)
	assert.Equal(t, []string{"CREATE PolicyProfile a (UnknownField)"}, verdicts(got))
}

func TestNothingOfASecretIsInTheOutput(t *testing.T) {
	const text = "apiVersion: v1\nkind: Secret\nmetadata: {namespace: app, name: s, annotations: {a: topsecret}}\ndata: {a: topsecret, b: 1}\n"
	for _, args := range [][]string{{"effective", "-v"}, {"violations", "-v"}, {"check", "--against", contract, "-v"}, {"diff", "--against", contract, "-o", "json"}} {
		got := run(t, text, append(args, "-f", "-")...)
		assert.NotContains(t, got.stdout+got.stderr, "topsecret", args)
	}
}

// Every command names the policy kinds without a definition once, and with
// --validate=strict that is an error.
func TestKindsWithoutDefinition(t *testing.T) {
	base, change := write(t, "base.yaml", undatedBase+securityPolicy("old", "")), write(t, "change.yaml", securityPolicy("added", ""))
	const said = "fields of SecurityPolicy.gateway.envoyproxy.io are not validated, so that a misspelled one is not found: add the CustomResourceDefinition to the manifests\n"
	for name, args := range map[string][]string{
		"effective":  {"effective", "-f", base},
		"violations": {"violations", "-f", base},
		"outcome":    {"outcome", "-f", base, "-A"},
		"explain":    {"explain", "-f", base, "-n", "app", "httproute/r"},
		"reach":      {"reach", "-f", base, "-n", "app", "securitypolicy/old"},
		"graph":      {"graph", "-f", base, "-A"},
		"request":    {"effective", "-f", base, "--request", "http://shop.example.com/"},
		"check":      {"check", "-f", change, "--against", base},
		"diff":       {"diff", "-f", change, "--against", base},
	} {
		t.Run(name, func(t *testing.T) {
			got := (&app{reader: reader{connection: connection{list: cache.List}}}).execute(t, "", args...)
			assert.Equal(t, 1, strings.Count(got.stderr, said), got.stderr)
			got = (&app{reader: reader{connection: connection{list: cache.List}}}).execute(t, "", append(args, "--validate=strict")...)
			assert.Equal(t, exitError, got.code)
			assert.Contains(t, got.stderr, "--validate=strict: fields of SecurityPolicy.gateway.envoyproxy.io cannot be validated")
		})
	}
}
