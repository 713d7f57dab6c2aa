package commands

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"overrule.dev/overrule/internal/cache"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/tables"
)

// Objects that nothing reads, though they were probably meant to have an effect.
func TestNotRead(t *testing.T) {
	for name, c := range tables.Read[map[string]struct{ Manifest, Want string }](t, "testdata/tables/not-read.yaml") {
		t.Run(name, func(t *testing.T) {
			file, empty := write(t, "x.yaml", c.Manifest), write(t, "ns.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: app}\n")
			checked := run(t, "", "check", "-f", file, "--against", empty)
			assert.Equal(t, exitOK, checked.code)
			revised := run(t, "", "check", "--from", empty, "--to", empty, "--to", file)
			assert.Equal(t, exitOK, revised.code)
			read := run(t, "", "effective", "-f", file)
			removed := run(t, "", "check", "--delete", "-f", file, "--against", file)
			assert.NotContains(t, removed.stdout, "NotRead")
			if c.Want == "" {
				assert.Equal(t, "no object in the change affects effective policies\n", checked.stderr)
				assert.NotContains(t, revised.stdout, "NotRead")
				assert.Equal(t, "no effective policies found\n", read.stderr)
				return
			}
			assert.Contains(t, checked.stdout, "warning NotRead: ")
			assert.Contains(t, checked.stdout, c.Want)
			assert.Contains(t, revised.stdout, c.Want)
			assert.Contains(t, read.stderr, "x.yaml:1 (document 1): "+strings.TrimPrefix(strings.Split(c.Manifest, "\n")[1], "kind: ")+" app/x: ")
			assert.Contains(t, read.stderr, c.Want)
		})
	}
}

// Without a definition, a version that no release of a kind has is reported, with its position and
// the versions that are known; with one, the versions are those that it serves.
func TestUnknownVersions(t *testing.T) {
	const target = "spec: {targetRef: {group: gateway.networking.k8s.io, kind: HTTPRoute, name: r}}\n"
	for name, c := range map[string]struct{ apiVersion, kind, want string }{
		"of Envoy Gateway":              {"gateway.envoyproxy.io/v1alpha9", "SecurityPolicy", `version "v1alpha9" of kind SecurityPolicy.gateway.envoyproxy.io is not read; the object is evaluated as one of those that are: v1alpha1`},
		"of Kuadrant":                   {"kuadrant.io/v1beta9", "AuthPolicy", `version "v1beta9" of kind AuthPolicy.kuadrant.io is not read; the object is evaluated as one of those that are: v1, v1beta1, v1beta2, v1beta3`},
		"of another kind of the group":  {"gateway.nginx.org/v1alpha2", "ProxySettingsPolicy", `version "v1alpha2" of kind ProxySettingsPolicy.gateway.nginx.org is not read; the object is evaluated as one of those that are: v1alpha1`},
		"an older one":                  {"kuadrant.io/v1beta2", "AuthPolicy", ""},
		"of a kind that no profile has": {"acme.example.com/v7", "Widget", ""},
		"of a kind with a built-in CRD": {"gateway.networking.k8s.io/v9", "BackendTLSPolicy", `no matches for kind "BackendTLSPolicy" in version "gateway.networking.k8s.io/v9"; served versions: v1, v1alpha3`},
	} {
		t.Run(name, func(t *testing.T) {
			file := write(t, "x.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: app}\n---\napiVersion: "+c.apiVersion+"\nkind: "+c.kind+"\nmetadata: {namespace: app, name: x}\n"+target)
			base := write(t, "base.yaml", undatedBase)
			checked := run(t, "", "check", "-f", file, "--against", base)
			revised := run(t, "", "check", "--from", base, "--to", base, "--to", file)
			read := run(t, "", "effective", "-f", base, "-f", file)
			for _, got := range []string{checked.stdout, revised.stdout, read.stderr} {
				if c.want == "" {
					assert.NotContains(t, got, "version")
				} else {
					assert.Contains(t, got, c.want)
				}
			}
			if c.want != "" {
				assert.Contains(t, read.stderr, file+":5:1: "+c.kind+" app/x: ")
			}
			ignored := run(t, "", "effective", "--validate=ignore", "-f", base, "-f", file)
			assert.NotContains(t, ignored.stderr, "is evaluated as one")
		})
	}
}

// A request has no answer if what routes it is not read.
func TestRequestNeedsWhatRoutesIt(t *testing.T) {
	kubeconfig := startReviewer(t, false).kubeconfig(t)
	for request, needs := range map[string]string{
		"http://x.org/":         "namespaces listenersets xlistenersets",
		"https://x.org/":        "namespaces listenersets xlistenersets tlsroutes tcproutes",
		"tcp://:1":              "namespaces listenersets xlistenersets tcproutes",
		"udp://:1":              "namespaces listenersets xlistenersets udproutes",
		"http://toystore.app -": "services tcproutes",
	} {
		request, mesh := strings.CutSuffix(request, " -")
		for resource := range strings.FieldsSeq("namespaces services gatewayclasses referencegrants listenersets xlistenersets tlsroutes tcproutes udproutes authpolicies") {
			problem := cache.Problem{Resource: resource + ".example.com", Err: apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "", errors.New("no"))}
			a := &app{reader: reader{connection: connection{list: func(context.Context, *rest.Config) (*snapshot.View, []cache.Problem, error) {
				return clusterView(t, nil), []cache.Problem{problem}, nil
			}}}}
			args := []string{"effective", "--request", request, "--kubeconfig", kubeconfig}
			if mesh {
				args = append(args, "--client-namespace", "app")
			}
			got := a.exec(t, "", args...)
			const failure = "error: find where the request goes: "
			if strings.Contains(" "+needs+" ", " "+resource+" ") {
				assert.Equal(t, exitError, got.code, "%s without %s", request, resource)
				assert.Empty(t, got.stdout)
				assert.Contains(t, got.stderr, failure+resource+" is forbidden: no; or specify manifests with -f\n")
				continue
			}
			assert.NotContains(t, got.stderr, failure, "%s without %s", request, resource)
			assert.Contains(t, got.stderr, "warning: read "+resource)
		}
	}
}
