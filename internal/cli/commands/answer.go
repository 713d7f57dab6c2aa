package commands

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/lookup"
	"overrule.dev/overrule/merge"
)

// question is what a command asks.
type question struct {
	queryFlags
	args    []string
	request requestFlags // not given for a command without them
	rule    *merge.Name
	section string
	parts   []api.ReviewPart
}

// answer is the answer to a question.
type answer struct {
	*api.ReviewStatus
	objects []api.Ref // that the question names
	query   *query    // nil if Overrule answered on the cluster
	review  *review   // nil if the query was answered here
}

// ask answers a question from the objects of the source. Overrule answers it for users who
// are not allowed to list the cluster.
func (a *app) ask(ctx context.Context, q question) (*answer, error) {
	out := &answer{}
	var from lookup.Answerer
	query, err := a.query(ctx, q)
	if err == nil {
		for _, o := range query.Objects {
			out.objects = append(out.objects, o.Ref())
		}
		out.query, from = query, &query.Query
	} else {
		if out.review, err = a.reviewAfter(err, q); err != nil {
			return nil, err
		}
		out.objects, from = []api.Ref{out.review.ref()}, out.review
	}
	out.ReviewStatus, err = from.Answer(ctx)
	return out, err
}

// reviewAfter returns the review for a question if the error of the cluster says that the
// user is not allowed to list it, and if one object of a namespace is named; else the error.
func (a *app) reviewAfter(cause error, q question) (*review, error) {
	switch {
	case !errors.Is(cause, errReadCluster) || !apierrors.IsForbidden(cause):
		return nil, cause
	case len(q.args) == 0 || q.allNamespaces:
		return nil, fmt.Errorf("%w; or name an object of one namespace, such as httproute/NAME, to ask Overrule about it", cause)
	}
	c, err := a.newCluster(nil)
	if err != nil {
		return nil, err
	}
	r, err := c.newReview(q)
	if err != nil {
		return nil, fmt.Errorf("%w (the rights to list the cluster are missing, too: %w)", err, cause)
	}
	a.infof("note: you are not allowed to list the objects of all namespaces; asked Overrule in namespace %s: values of policies that you are not allowed to read are redacted", r.namespace)
	return r, nil
}

// note prints what is to be known besides an answer: the owners of policies, or the
// controllers that are not known if the answer has anything.
func (x *answer) note(a *app, any bool) {
	switch {
	case x.review != nil:
		x.review.noteOwners(x.ReviewStatus)
	case any:
		a.warnControllers(x.query.view)
	}
}

// served returns lookup.ErrNotServed if nothing serves the request of the question.
func (x *answer) served() error {
	if x.Request != nil && !x.Request.Served {
		return lookup.ErrNotServed
	}
	return nil
}
