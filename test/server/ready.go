package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"overrule.dev/overrule/test/env"
	"overrule.dev/overrule/test/process"
)

const (
	// patience is the maximum time until the server is ready, and until the API
	// server calls it: long enough for a busy machine.
	patience = 2 * time.Minute
	pause    = 20 * time.Millisecond
)

// ErrNotReady means that the server stopped, or was not ready in time.
var ErrNotReady = errors.New("the server is not ready")

// waitUntilReady sets ReadyAfter.
func (s *Server) waitUntilReady(ctx context.Context, every time.Duration) error {
	wait := process.Wait{Limit: patience, Pause: cmp.Or(every, pause), Problem: "it does not say that it is ready"}
	err := s.until(ctx, wait, process.OK("http://"+s.Health+"/readyz?verbose"))
	s.ReadyAfter = s.Age()
	return err
}

// Probe is a policy without an existing target, which results in a warning.
const Probe = `
apiVersion: kuadrant.io/v1
kind: AuthPolicy
metadata: {name: probe, namespace: default}
spec:
  targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: nothing}
  rules: {authentication: {a: 1}}
`

// WaitUntilCalled waits until the API server calls the server: it learns of the
// webhook configurations by a watch, some moments after they were written. The
// validating webhook's response is a warning, the mutating one's an annotation. Then
// it waits for the failurePolicy that the server registers once it was reached.
func (s *Server) WaitUntilCalled(ctx context.Context, e *env.Env) error {
	wait := process.Wait{Limit: patience, Pause: pause, Problem: "the API server does not call it"}
	return s.until(ctx, wait, func(ctx context.Context) (bool, string) {
		warnings, annotations, err := probe(ctx, e.Config)
		if err != nil {
			return false, err.Error()
		}
		mutated := slices.ContainsFunc(slices.Collect(maps.Keys(annotations)), func(name string) bool {
			return strings.HasPrefix(name, "overrule.dev/")
		})
		if len(warnings) == 0 || !mutated {
			return false, fmt.Sprintf("warnings %q, annotations %v", warnings, annotations)
		}
		return s.registered(ctx, e.Config)
	})
}

// registered reports whether the failurePolicy is final: Fail, unless the server was
// started with another one or does not write the configurations.
func (s *Server) registered(ctx context.Context, config *rest.Config) (bool, string) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return false, err.Error()
	}
	c, err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, Name, metav1.GetOptions{})
	if err != nil {
		return false, err.Error()
	}
	managed := c.Annotations["overrule.dev/installation"] != "" && !s.ignores
	if policy := c.Webhooks[0].FailurePolicy; managed && *policy != admissionregistrationv1.Fail {
		return false, "failurePolicy is " + string(*policy)
	}
	return true, ""
}

// probe creates Probe in a dry run, and returns the warnings and annotations.
func probe(ctx context.Context, config *rest.Config) (warnings []string, annotations map[string]string, err error) {
	var policy unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(Probe), &policy.Object); err != nil {
		return nil, nil, err
	}
	config = rest.CopyConfig(config)
	heard := &collector{}
	config.WarningHandler = heard
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	policies := client.Resource(schema.GroupVersionResource{Group: "kuadrant.io", Version: "v1", Resource: "authpolicies"})
	created, err := policies.Namespace(policy.GetNamespace()).Create(ctx, &policy, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return nil, nil, err
	}
	return heard.texts, created.GetAnnotations(), nil
}

// collector keeps the warnings of one request.
type collector struct{ texts []string }

// HandleWarningHeader implements rest.WarningHandler.
func (c *collector) HandleWarningHeader(code int, _, text string) {
	if code == 299 && text != "" {
		c.texts = append(c.texts, text)
	}
}

func (s *Server) until(ctx context.Context, w process.Wait, ask process.Question) error {
	if err := s.Until(ctx, w, ask); err != nil {
		return fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	return nil
}
