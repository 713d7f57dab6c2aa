package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/graph"
	"overrule.dev/overrule/internal/cli/manifest"
	"overrule.dev/overrule/internal/cli/ui"
	"overrule.dev/overrule/internal/gateway"
)

// reviewState answers the page for a user who is not allowed to list the cluster: with
// the objects of one namespace, and by reviews.
type reviewState struct {
	app       *app
	namespace string
	objects   []ui.Object
}

// errListed is the error of a question that reviews do not answer.
var errListed = errors.New("requires the right to list the objects of all namespaces")

// newReviewState lists the objects of the namespace that the user is allowed to list.
func (a *app) newReviewState(ctx context.Context) (*reviewState, error) {
	d, err := a.newDryRun(false)
	if err != nil {
		return nil, err
	}
	if err := d.probe(ctx); err != nil {
		return nil, err
	}
	u := &reviewState{app: a, namespace: d.namespace}
	kinds := hierarchyKinds()
	for _, k := range d.kinds.All() {
		kinds = append(kinds, k.Ref())
	}
	for _, kind := range kinds {
		mapping, err := d.mapper.RESTMapping(schema.GroupKind{Group: kind.Group, Kind: kind.Kind})
		if err != nil || mapping.Scope.Name() != meta.RESTScopeNameNamespace || kind == gateway.KindOf(gateway.KindReferenceGrant) {
			continue // it is not installed, or no review can be about it
		}
		u.objects = append(u.objects, namesOf(ctx, d.client.Resource(mapping.Resource).Namespace(u.namespace), kind, d.kinds)...)
	}
	slices.SortFunc(u.objects, func(a, b ui.Object) int { return api.CompareRefs(a.Ref, b.Ref) })
	return u, nil
}

// namesOf returns the objects of a resource, none if the user is not allowed to list them.
func namesOf(ctx context.Context, client dynamic.ResourceInterface, kind api.PolicyKind, kinds *manifest.Kinds) []ui.Object {
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	var out []ui.Object
	for i := range list.Items {
		o := &list.Items[i]
		ref := api.Ref{Group: kind.Group, Kind: kind.Kind, Namespace: o.GetNamespace(), Name: o.GetName()}
		out = append(out, ui.Object{Ref: ref, Policy: kinds.Of(kind) != nil})
	}
	return out
}

// review returns the review of an object.
func (u *reviewState) review(o ui.ObjectQuery, parts ...api.ReviewPart) (*reviewed, error) {
	a, _ := u.app.quietApp(nil)
	r, err := a.newReview(queryFlags{}, []string{o.Kind + "/" + o.Name})
	if err != nil {
		return nil, inputError{err}
	}
	if o.Namespace != "" {
		r.namespace = o.Namespace
	}
	r.spec.Parts = parts
	return r, nil
}

// ask returns the answer to a review.
func (u *reviewState) ask(ctx context.Context, r *reviewed) (*api.ReviewStatus, error) {
	status, err := r.ask(ctx)
	if err != nil {
		return nil, inputError{err}
	}
	return status, nil
}

// Objects implements ui.State.
func (u *reviewState) Objects() []ui.Object { return u.objects }

// Object implements ui.State.
func (u *reviewState) Object(ctx context.Context, o ui.ObjectQuery) (*ui.ObjectAnswer, error) {
	r, err := u.review(o, api.ReviewExplanations, api.ReviewOutcomes)
	if err != nil {
		return nil, err
	}
	if o.Limit > 0 {
		r.spec.MaxPaths = new(int32(o.Limit)) //nolint:gosec // it is a number of paths on one page
	}
	status, err := u.ask(ctx, r)
	if err != nil {
		return nil, err
	}
	out := &ui.ObjectAnswer{Object: ui.Object{Ref: r.ref()}, Outcomes: status.Outcomes, Namespaces: make(map[string]map[string]string)}
	if i := slices.IndexFunc(u.objects, func(known ui.Object) bool { return known.Ref == r.ref() }); i >= 0 {
		out.Object = u.objects[i]
	}
	out.TypeMeta = api.TypeMeta{APIVersion: api.APIVersion, Kind: api.KindExplanationList}
	out.Items = append([]api.Explanation{}, status.Explanations...)
	out.Total = len(out.Items)
	if status.Truncated != nil {
		out.Total += status.Truncated.Explanations
	}
	return out, nil
}

// Picture implements ui.State.
func (u *reviewState) Picture(ctx context.Context, o ui.ObjectQuery, link func(kind, namespace, name string) string) (string, error) {
	r, err := u.review(o, graphParts...)
	if err != nil {
		return "", err
	}
	status, err := u.ask(ctx, r)
	if err != nil {
		return "", err
	}
	return reviewedGraph(status).Graph(graph.Options{More: "Open an object to see more."}).SVG(link), nil
}

// Request implements ui.State.
func (u *reviewState) Request(context.Context, ui.RequestQuery) (*ui.Explanations, error) {
	return nil, inputError{fmt.Errorf("where a request goes: %w", errListed)}
}

// Violations implements ui.State.
func (u *reviewState) Violations(context.Context, int) (*ui.Violations, error) {
	return nil, inputError{fmt.Errorf("violations: %w", errListed)}
}

// Change implements ui.State.
func (u *reviewState) Change(context.Context, ui.Change) (*ui.ChangeAnswer, error) {
	return nil, inputError{fmt.Errorf("trying a change here: %w; use kubectl overrule check", errListed)}
}

// Manifest implements ui.State.
func (u *reviewState) Manifest(ctx context.Context, o ui.ObjectQuery) (string, error) {
	r, err := u.review(o)
	if err != nil {
		return "", err
	}
	content, err := u.app.getFromCluster(ctx, r.ref())
	if err != nil {
		return "", err
	}
	return manifestText(r.ref(), content)
}

// Warnings implements ui.State.
func (u *reviewState) Warnings() []string {
	return []string{fmt.Sprintf("you are not allowed to list the objects of all namespaces: these are those of namespace %s, and Overrule answers without values of policies that you are not allowed to read", u.namespace)}
}
