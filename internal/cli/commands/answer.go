package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/lookup"
	"overrule.dev/overrule/merge"
)

// question is what a command or the page asks.
type question struct {
	paths         []string // of manifests, none for the cluster
	allNamespaces bool
	kinds         []string // of policies, none for all
	kind, name    string   // of the object, "" for none
	namespace     string   // of the object, "" for that of the source
	ruleText      string
	rule          *merge.Name  // by ruleText, nil for none
	request       requestFlags // not given for a command without them
	section       string
	parts         []api.ReviewPart
	maxPaths      int
}

// answer is the answer to a question: from the objects of a source, or for users who are not
// allowed to list the cluster, from Overrule.
type answer struct {
	*api.ReviewStatus
	query  *query  // nil if Overrule answers
	review *review // nil if the query is answered here
}

// ask answers a question.
func (r *reader) ask(ctx context.Context, q question) (*answer, error) {
	if q.ruleText != "" {
		name, err := merge.ParseName(q.ruleText)
		if err != nil {
			return nil, fmt.Errorf("invalid RULE: %w", err)
		}
		q.rule = &name
	}
	x := &answer{}
	var err error
	if x.query, err = r.query(ctx, q); err != nil {
		if x.review, err = r.reviewAfter(err, q); err != nil {
			return nil, err
		}
	}
	if err := x.get(ctx); err != nil {
		return nil, err
	}
	if t := x.Truncated; t != nil {
		r.warnf("left out %d effective policies, %d outcomes, %d explanations, %d policies that affect the object: name a policy kind with --kind, a rule, or an object with fewer paths", t.Items, t.Outcomes, t.Explanations, t.Reaches)
	}
	return x, nil
}

// get gets the answer.
func (x *answer) get(ctx context.Context) (err error) {
	if x.review != nil {
		x.ReviewStatus, err = x.review.answer(ctx)
	} else {
		x.ReviewStatus, err = x.query.Answer(ctx)
	}
	return err
}

// objects returns the objects that the question names.
func (x *answer) objects() []api.Ref {
	if x.review != nil {
		return []api.Ref{x.review.ref()}
	}
	var out []api.Ref
	for _, o := range x.query.Objects {
		out = append(out, o.Ref())
	}
	return out
}

// reviewAfter returns the review for a question if the error of the cluster says that the
// user is not allowed to list it, and if one object of a namespace is named; else the error.
func (r *reader) reviewAfter(cause error, q question) (*review, error) {
	switch {
	case !errors.Is(cause, errReadCluster) || !apierrors.IsForbidden(cause):
		return nil, cause
	case q.name == "" || q.allNamespaces:
		return nil, fmt.Errorf("%w; or name an object of one namespace, such as httproute/NAME, to ask Overrule about it", cause)
	}
	c, err := r.newCluster(nil)
	if err != nil {
		return nil, err
	}
	out, err := c.newReview(q)
	if err != nil {
		return nil, fmt.Errorf("%w (the rights to list the cluster are missing, too: %w)", err, cause)
	}
	r.infof("note: you are not allowed to list the objects of all namespaces; asked Overrule in namespace %s: values of policies that you are not allowed to read are redacted", out.namespace)
	return out, nil
}

// note prints what is to be known besides an answer: the owners of policies, or the
// controllers that are not known if the answer has anything.
func (x *answer) note(t *terminal, any bool) {
	if x.review == nil {
		if any {
			t.warnControllers(x.query.view)
		}
		return
	}
	if others := otherOwners(x.ReviewStatus, x.review.namespace); len(others) > 0 {
		t.infof("note: to change what policies of other namespaces set here, ask their owners: %s", strings.Join(others, ", "))
	}
}

// otherOwners returns whom to ask about what holds: the policies of other namespaces whose
// rules are in effect, or that took rules.
func otherOwners(status *api.ReviewStatus, namespace string) []string {
	var others []string
	add := func(ref api.Ref) {
		if ref.Namespace != namespace && ref.Name != "" {
			others = append(others, ref.String())
		}
	}
	for _, item := range status.Items {
		for _, rule := range item.Rules {
			add(rule.From)
		}
	}
	for _, o := range status.Outcomes {
		for _, lost := range o.Lost {
			add(lost.To)
		}
	}
	for _, x := range status.Explanations {
		for _, p := range x.Policies {
			if len(p.Contributed) > 0 {
				add(p.Policy)
			}
			for _, lost := range p.Lost {
				add(lost.To)
			}
		}
	}
	slices.Sort(others)
	return slices.Compact(others)
}

// served returns lookup.ErrNotServed if nothing serves the request of the question.
func (x *answer) served() error {
	if x.Request != nil && !x.Request.Served {
		return lookup.ErrNotServed
	}
	return nil
}
