package commands

import (
	"context"
	"errors"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metaunstructured "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/manifest"
	"overrule.dev/overrule/internal/cli/report"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/guard"
)

// warningList collects the warnings of an API server.
type warningList []api.Reason

// HandleWarningHeader implements rest.WarningHandler.
func (w *warningList) HandleWarningHeader(code int, _, text string) {
	if code == 299 {
		*w = append(*w, api.Reason{Code: api.CodeWarning, Message: text})
	}
}

// checkOnCluster has the API server check a change by dry runs, for users who are not
// allowed to list the cluster: err is the error of the attempt. It returns err if that is
// not why it failed.
func (o *changeOptions) checkOnCluster(ctx context.Context, err error, unlisted *change) error {
	if unlisted == nil || unlisted.set == nil || !apierrors.IsForbidden(err) || len(unlisted.flags.against) > 0 {
		return err
	}
	if unlisted.flags.blastRadius > 0 {
		return fmt.Errorf("%w (--blast-radius-limit requires the right to list the cluster)", err)
	}
	var warnings warningList
	c, err := o.newCluster(&warnings)
	if err != nil {
		return err
	}
	if err := c.probe(ctx, &o.terminal); err != nil {
		return err
	}
	kinds := manifest.NewKinds(nil)
	o.infof("note: you are not allowed to list the objects of all namespaces; the API server evaluates each object in a dry run of its own, and paths are not counted")
	verdicts := []api.Verdict{}
	for _, object := range unlisted.set.Objects {
		warnings = nil
		v, err := c.dryRun(ctx, object, object.Ref(kinds, c.namespace), unlisted.flags.remove)
		if err != nil {
			if o.redact {
				err = withoutDetails(err)
			}
			return fmt.Errorf("dry run of %s of %s: %w", v.Operation, v.Object, err)
		}
		if v.Warnings = warnings; o.redact {
			redactReasons(v.Reasons)
			redactReasons(v.Warnings)
		}
		verdicts = append(verdicts, v)
	}
	return o.writeVerdicts(verdicts, func(b *reportBuilder) {
		for i, v := range verdicts {
			b.addVerdict(v, report.Error, unlisted.set.Objects[i], nil)
		}
	})
}

// probe asks about an object that does not exist, and returns an error if Overrule does
// not answer: then a dry run is not evaluated either.
func (c *cluster) probe(ctx context.Context, t *terminal) error {
	r := &review{cluster: c, namespace: c.namespace}
	r.spec.Object = api.ReviewObject{Group: api.GatewayGroup, Kind: gateway.KindGateway, Name: "kubectl-overrule"}
	_, err := r.answer(ctx)
	switch {
	case errors.Is(err, errNoAnswer), errors.Is(err, errNoReviews):
		return err
	case err != nil && !errors.Is(err, errNotFound):
		t.warnf("cannot determine whether Overrule runs: %v", err)
	}
	return nil
}

// dryRun writes an object in a dry run, and returns the verdict on it without its warnings.
func (c *cluster) dryRun(ctx context.Context, o *manifest.Object, ref api.Ref, remove bool) (api.Verdict, error) {
	object := &metaunstructured.Unstructured{Object: maps.Clone(o.Content())}
	operation, err := c.write(ctx, object, ref, remove)
	v := api.Verdict{Object: ref, Operation: operation, Allowed: err == nil, DryRun: true, Reasons: denialReasons(err)}
	if v.Allowed || len(v.Reasons) > 0 {
		return v, nil
	}
	return v, err
}

func (c *cluster) write(ctx context.Context, object *metaunstructured.Unstructured, ref api.Ref, remove bool) (operation string, err error) {
	kind, all := object.GroupVersionKind(), []string{metav1.DryRunAll}
	operation = string(guard.Create)
	client, err := c.resource(kind.GroupKind(), ref.Namespace, kind.Version)
	if err != nil {
		return operation, err
	}
	if remove {
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
	return operation, err
}

// denialReasons returns the findings of a denial by Overrule, or what the API server finds
// invalid in an object; none for another error.
func denialReasons(err error) []api.Reason {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return nil
	}
	details := status.Status().Details
	if !apierrors.IsInvalid(err) || details == nil || len(details.Causes) == 0 {
		return api.DenialReasons(details)
	}
	var out []api.Reason
	for _, c := range details.Causes {
		out = append(out, api.Reason{Code: api.ReasonSchemaInvalid, Field: c.Field, Message: c.Field + ": " + c.Message})
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
