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
)

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
			a := &app{list: func(context.Context, *rest.Config) (*snapshot.View, []cache.Problem, error) {
				return clusterView(t, nil), []cache.Problem{problem}, nil
			}}
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
