package commands

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metaunstructured "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/manifest"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/guard"
)

// unlistedError is the error of a change for which the cluster cannot be listed.
type unlistedError struct {
	error
	set *manifest.Set
}

// Unwrap returns the error of the list.
func (e *unlistedError) Unwrap() error { return e.error }

// dryRunResult is the verdicts of dry runs, with their objects.
type dryRunResult struct {
	verdicts []api.Verdict
	objects  []*manifest.Object
	kinds    *manifest.Kinds
}

// checkByDryRun checks a change by a dry run on the API server, for users who are not
// allowed to list the cluster: err is the error of the attempt. It returns err if that is
// not why it failed.
func (a *app) checkByDryRun(ctx context.Context, err error, f changeFlags) (*dryRunResult, error) {
	unlisted, ok := errors.AsType[*unlistedError](err)
	if !ok || !apierrors.IsForbidden(err) || len(f.against) > 0 {
		return nil, err
	}
	if f.blastRadius > 0 {
		return nil, fmt.Errorf("%w (--blast-radius-limit requires the right to list the cluster)", err)
	}
	d, err := a.newDryRun(f.remove)
	if err != nil {
		return nil, err
	}
	if err := d.probe(ctx); err != nil {
		return nil, err
	}
	a.infof("note: you are not allowed to list the objects of all namespaces; the API server evaluates each object in a dry run of its own, and paths are not counted")
	out := &dryRunResult{verdicts: []api.Verdict{}, objects: unlisted.set.Objects, kinds: d.kinds}
	for _, o := range unlisted.set.Objects {
		v, err := d.evaluate(ctx, o)
		if err != nil {
			return nil, err
		}
		out.verdicts = append(out.verdicts, v)
	}
	return out, nil
}

// diffByDryRun is checkByDryRun for the command diff, which denies nothing: what the
// change alters is not known.
func (a *app) diffByDryRun(ctx context.Context, err error, f changeFlags, out reportFlags) error {
	tried, err := a.checkByDryRun(ctx, err, f)
	if err != nil {
		return err
	}
	out.failOn = failOnNever
	return a.writeVerdicts(out, tried.verdicts, func(b *reportBuilder) { b.addDryRun(tried) })
}

// dryRun writes objects in dry runs.
type dryRun struct {
	app       *app
	client    dynamic.Interface
	mapper    meta.RESTMapper
	kinds     *manifest.Kinds
	namespace string
	remove    bool
	warnings  []string
}

func (a *app) newDryRun(remove bool) (*dryRun, error) {
	d := &dryRun{app: a, remove: remove}
	config, err := a.clusterConfig()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.WarningHandler = d
	if d.client, err = dynamic.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	if d.mapper, err = a.config.ToRESTMapper(); err != nil {
		return nil, fmt.Errorf("discover the resources of the cluster: %w", err)
	}
	if d.kinds, err = manifest.NewKinds(); err != nil {
		return nil, err
	}
	if d.namespace, _, err = a.config.ToRawKubeConfigLoader().Namespace(); err != nil {
		return nil, fmt.Errorf("read the namespace from the kubeconfig: %w", err)
	}
	return d, nil
}

// HandleWarningHeader implements rest.WarningHandler.
func (d *dryRun) HandleWarningHeader(code int, _, text string) {
	if code == 299 {
		d.warnings = append(d.warnings, text)
	}
}

// probe asks about an object that does not exist, and returns an error if Overrule does
// not answer: then a dry run is not evaluated either.
func (d *dryRun) probe(ctx context.Context) error {
	r := &reviewed{app: d.app, namespace: d.namespace}
	r.spec.Object = api.ReviewObject{Group: api.GatewayGroup, Kind: gateway.KindGateway, Name: "kubectl-overrule"}
	_, err := r.ask(ctx)
	switch {
	case errors.Is(err, errNoAnswer), errors.Is(err, errNoReviews):
		return err
	case err != nil && !errors.Is(err, errNotFound):
		d.app.warnf("cannot determine whether Overrule runs: %v", err)
	}
	return nil
}

// evaluate returns the verdict on one object.
func (d *dryRun) evaluate(ctx context.Context, o *manifest.Object) (api.Verdict, error) {
	ref := o.Ref(d.kinds, d.namespace)
	object := &metaunstructured.Unstructured{Object: maps.Clone(o.Content())}
	kind := object.GroupVersionKind()
	mapping, err := d.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return api.Verdict{}, fmt.Errorf("find the resource of %s: %w", ref, err)
	}
	d.warnings = nil
	operation, err := d.write(ctx, mapping, object, ref)
	v := api.Verdict{Object: ref, Operation: operation, Allowed: err == nil, DryRun: true}
	if v.Reasons, err = denialReasons(err); err != nil {
		if d.app.redact {
			err = withoutDetails(err)
		}
		return v, fmt.Errorf("dry run of %s of %s: %w", operation, ref, err)
	}
	for _, text := range d.warnings {
		v.Warnings = append(v.Warnings, reasonOf(text))
	}
	return v, nil
}

// write writes an object in a dry run.
func (d *dryRun) write(ctx context.Context, mapping *meta.RESTMapping, object *metaunstructured.Unstructured, ref api.Ref) (operation string, err error) {
	client := d.resource(mapping.Resource, mapping.Scope, ref.Namespace)
	all := []string{metav1.DryRunAll}
	if d.remove {
		return string(guard.Delete), client.Delete(ctx, ref.Name, metav1.DeleteOptions{DryRun: all})
	}
	stored, err := client.Get(ctx, ref.Name, metav1.GetOptions{})
	if err == nil {
		metadata := maps.Clone(object.Object["metadata"].(map[string]any)) //nolint:forcetypeassert // it has a name
		object.Object["metadata"] = metadata
		object.SetResourceVersion(stored.GetResourceVersion())
		_, err = client.Update(ctx, object, metav1.UpdateOptions{DryRun: all})
		return string(guard.Update), err
	}
	_, err = client.Create(ctx, object, metav1.CreateOptions{DryRun: all})
	return string(guard.Create), err
}

func (d *dryRun) resource(r schema.GroupVersionResource, scope meta.RESTScope, namespace string) dynamic.ResourceInterface {
	if scope.Name() == meta.RESTScopeNameNamespace {
		return d.client.Resource(r).Namespace(namespace)
	}
	return d.client.Resource(r)
}

// denialOf matches a denial by the validating webhook.
var denialOf = regexp.MustCompile(`(?s)admission webhook "[a-z.]*validate\.overrule\.dev" denied the request: (.*)`)

// denialReasons returns the findings in a denial, what in the object is invalid, and any
// other error as it is.
func denialReasons(err error) ([]api.Reason, error) {
	if err == nil {
		return nil, nil
	}
	if apierrors.IsInvalid(err) {
		return invalidReasons(err), nil
	}
	found := denialOf.FindStringSubmatch(err.Error())
	if found == nil {
		return nil, err
	}
	var out []api.Reason
	for line := range strings.SplitSeq(strings.TrimSpace(found[1]), "\n") {
		out = append(out, reasonOf(line))
	}
	return out, nil
}

// invalidReasons returns what the API server finds invalid in an object.
func invalidReasons(err error) []api.Reason {
	var out []api.Reason
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		for _, c := range status.Status().Details.Causes {
			out = append(out, api.Reason{Code: api.ReasonSchemaInvalid, Message: c.Field + ": " + c.Message})
		}
	}
	if len(out) == 0 {
		out = []api.Reason{{Code: api.ReasonSchemaInvalid, Message: err.Error()}}
	}
	return out
}

// withoutDetails returns an error without its message, which may quote the object.
func withoutDetails(err error) error {
	reason := apierrors.ReasonForError(err)
	if reason == metav1.StatusReasonUnknown {
		return errors.New("it failed; details are omitted, since they may have values of policies")
	}
	return fmt.Errorf("the API server returns %s; details are omitted, since they may have values of policies", reason)
}

var codeOf = regexp.MustCompile(`^([A-Z][A-Za-z]+): (.*)$`)

// reasonOf returns the finding in a line of a denial or in a warning.
func reasonOf(line string) api.Reason {
	if found := codeOf.FindStringSubmatch(line); found != nil {
		return api.Reason{Code: api.ReasonCode(found[1]), Message: found[2]}
	}
	return api.Reason{Code: api.CodeWarning, Message: line}
}
