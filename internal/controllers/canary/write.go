package canary

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	api "overrule.dev/overrule/api/v1alpha1"
)

// write is a create request that is sent as a dry run.
type write struct {
	description string // for the output
	resource    schema.GroupVersionResource
	namespace   string
	object      map[string]any
	// check evaluates the answer.
	check func(api.Action, answer) verdict
}

// answer is the response to a write.
type answer struct {
	err      error
	warnings []string
	object   *unstructured.Unstructured // nil after an error
	write    write
}

var (
	profiles   = schema.GroupVersionResource{Group: api.Group, Version: "v1alpha1", Resource: "policyprofiles"}
	httpRoutes = schema.GroupVersionResource{Group: api.GatewayGroup, Version: "v1", Resource: "httproutes"}
)

// staleAnnotation is the value of an annotation that the mutating webhook removes from
// a route without paths, which shows that it was called.
const staleAnnotation = "canary"

// writes returns the writes of a run. Names are generated, so that they do not conflict
// with existing objects. No object has the kind that the profiles are about.
func (c *Canary) writes() []write {
	out := []write{
		{
			description: "PolicyProfile that must be denied", resource: profiles, check: checkDenied,
			object: profile(map[string]any{}), // without target fields, which the schema does not require
		},
		{
			description: "PolicyProfile that must pass", resource: profiles, check: checkAdmitted,
			object: profile(map[string]any{"fields": []any{"targetRef"}}),
		},
	}
	if c.opts.Namespace == "" {
		return out
	}
	return append(out, write{
		description: "HTTPRoute in namespace " + c.opts.Namespace + " that must pass", resource: httpRoutes, namespace: c.opts.Namespace, check: checkMutated,
		object: object(httpRoutes.GroupVersion(), "HTTPRoute", map[string]any{
			"rules": []any{map[string]any{}},
		}, map[string]any{api.AnnotationEffectivePolicy: staleAnnotation}),
	})
}

// profile returns a PolicyProfile of a fictitious kind.
func profile(targets map[string]any) map[string]any {
	return object(profiles.GroupVersion(), api.KindPolicyProfile, map[string]any{
		"group": api.GroupCanary, "kind": "CanaryPolicy", "class": "direct", "targets": targets,
	}, nil)
}

func object(version schema.GroupVersion, kind string, spec, annotations map[string]any) map[string]any {
	metadata := map[string]any{"generateName": "overrule-canary-", "labels": map[string]any{api.LabelCanary: "true"}}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	return map[string]any{"apiVersion": version.String(), "kind": kind, "metadata": metadata, "spec": spec}
}

// send sends a write as a dry run.
func (c *Canary) send(ctx context.Context, w write) answer {
	a := answer{write: w}
	body, err := json.Marshal(w.object)
	if err != nil {
		a.err = fmt.Errorf("write %s as JSON: %w", w.description, err)
		return a
	}
	got := c.post(w).Body(body).Do(ctx)
	for _, warning := range got.Warnings() {
		a.warnings = append(a.warnings, warning.Text)
	}
	if a.err = got.Error(); a.err != nil {
		return a
	}
	raw, err := got.Raw()
	if err != nil {
		a.err = err
		return a
	}
	a.object = &unstructured.Unstructured{}
	if err := a.object.UnmarshalJSON(raw); err != nil {
		a.object, a.err = nil, fmt.Errorf("decode the response of the API server: %w", err)
	}
	return a
}

func (c *Canary) post(w write) *rest.Request {
	path := []string{"apis", w.resource.Group, w.resource.Version}
	if w.namespace != "" {
		path = append(path, "namespaces", w.namespace)
	}
	return c.api.Post().AbsPath(append(path, w.resource.Resource)...).
		// A request to retry is an answer, too.
		MaxRetries(0).
		Param("dryRun", metav1.DryRunAll).
		SetHeader("Content-Type", "application/json")
}
