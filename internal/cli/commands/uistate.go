package commands

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/graph"
	"overrule.dev/overrule/internal/cli/manifest"
	"overrule.dev/overrule/internal/cli/ui"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/lookup"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// uiState answers the page from the objects of one moment, as the commands do. For a user
// who is not allowed to list the cluster, Overrule answers it.
type uiState struct {
	app      *app
	source   *source  // nil if the user is not allowed to list the cluster
	cluster  *cluster // nil for manifests
	objects  []ui.Object
	warnings []string
}

func newUIState(a *app, s *source, said []string) (*uiState, error) {
	u := &uiState{app: a, source: s, warnings: said}
	for _, kind := range s.kinds.Objects() {
		for o := range s.view.Objects(kind) {
			u.objects = append(u.objects, uiObject(o))
		}
	}
	slices.SortFunc(u.objects, func(a, b ui.Object) int { return api.CompareRefs(a.Ref, b.Ref) })
	if s.set != nil {
		return u, nil
	}
	var err error
	u.cluster, err = a.newCluster(nil)
	return u, err
}

// newUnlistedState returns the state for a user who is not allowed to list the cluster:
// with the objects of one namespace.
func (a *app) newUnlistedState(ctx context.Context) (*uiState, error) {
	c, err := a.newCluster(nil)
	if err != nil {
		return nil, err
	}
	if err := c.probe(ctx, &a.terminal); err != nil {
		return nil, err
	}
	policies := manifest.NewKinds(nil)
	u := &uiState{app: a, cluster: c, warnings: []string{fmt.Sprintf("you are not allowed to list the objects of all namespaces: these are those of namespace %s, and Overrule answers without values of policies that you are not allowed to read", c.namespace)}}
	for _, kind := range policies.Objects() {
		if policies.ClusterScoped(kind) || kind == gateway.KindOf(gateway.KindReferenceGrant) {
			continue // no review can be about it
		}
		for _, ref := range c.names(ctx, kind) {
			u.objects = append(u.objects, ui.Object{Ref: ref, Policy: policies.Of(kind) != nil})
		}
	}
	slices.SortFunc(u.objects, func(a, b ui.Object) int { return api.CompareRefs(a.Ref, b.Ref) })
	return u, nil
}

// Warnings implements ui.State.
func (u *uiState) Warnings() []string { return u.warnings }

// inputError is an error of what the user entered.
type inputError struct{ error }

// Unwrap returns the error and ui.ErrInput, or ui.ErrNotFound if something was not found.
func (e inputError) Unwrap() []error {
	if errors.Is(e.error, lookup.ErrNotFound) {
		return []error{e.error, ui.ErrNotFound}
	}
	return []error{e.error, ui.ErrInput}
}

// listed returns an error if the user is not allowed to list the cluster.
func (u *uiState) listed(what string) error {
	if u.source == nil {
		return inputError{fmt.Errorf("%s: requires the right to list the objects of all namespaces", what)}
	}
	return nil
}

// in returns the source with another namespace, "" for its own.
func (u *uiState) in(namespace string) *source {
	s := *u.source
	if namespace != "" {
		s.namespace, s.namespaceSet = namespace, true
	}
	return &s
}

// about returns a question about an object.
func about(o ui.ObjectQuery, parts ...api.ReviewPart) question {
	return question{kind: o.Kind, name: o.Name, namespace: o.Namespace, parts: parts, maxPaths: o.Limit}
}

// find finds what a question is about. It has no answer yet.
func (u *uiState) find(q question) (x *answer, err error) {
	x = &answer{}
	if u.source == nil {
		x.review, err = u.cluster.newReview(q)
	} else {
		x.query, err = u.in(q.namespace).query(q)
	}
	if err != nil {
		return nil, inputError{err}
	}
	return x, nil
}

// ask returns the answer to a question.
func (u *uiState) ask(ctx context.Context, q question) (*answer, error) {
	x, err := u.find(q)
	if err != nil {
		return nil, err
	}
	if err = x.get(ctx); err != nil && (u.source == nil || q.request.given) {
		err = inputError{err}
	}
	return x, err
}

// Object implements ui.State.
func (u *uiState) Object(ctx context.Context, o ui.ObjectQuery) (*ui.ObjectAnswer, error) {
	status, err := u.ask(ctx, about(o, api.ReviewExplanations, api.ReviewOutcomes))
	if err != nil {
		return nil, err
	}
	ref := status.objects()[0]
	out := &ui.ObjectAnswer{Explanations: explanationsOf(status), Object: ui.Object{Ref: ref}, Outcomes: append([]api.Outcome{}, status.Outcomes...), Namespaces: make(map[string]map[string]string)}
	if i := slices.IndexFunc(u.objects, func(known ui.Object) bool { return known.Ref == ref }); i >= 0 {
		out.Object = u.objects[i]
	}
	if u.source == nil {
		return out, nil
	}
	for _, x := range status.Explanations {
		for _, p := range x.Policies {
			out.Namespaces[p.Policy.Namespace] = nil
		}
	}
	for _, p := range status.Outcomes {
		out.Namespaces[p.Policy.Namespace] = nil
	}
	for namespace := range out.Namespaces {
		out.Namespaces[namespace] = maps.Clone(u.source.view.NamespaceLabels(namespace))
	}
	return out, nil
}

// explanationsOf returns the explanations of an answer.
func explanationsOf(status *answer) ui.Explanations {
	out := ui.Explanations{Total: len(status.Explanations)}
	out.TypeMeta = api.TypeMeta{APIVersion: api.APIVersion, Kind: api.KindExplanationList}
	out.Items, out.Request = append([]api.Explanation{}, status.Explanations...), status.Request
	out.Message = status.Message
	if status.Truncated != nil {
		out.Total += status.Truncated.Explanations
	}
	return out
}

// Picture implements ui.State.
func (u *uiState) Picture(ctx context.Context, o ui.ObjectQuery, link func(kind, namespace, name string) string) (string, error) {
	status, err := u.ask(ctx, about(o, graphParts...))
	if err != nil {
		return "", err
	}
	return graphOf(status.ReviewStatus).Graph(graph.Options{More: "Open an object to see more."}).SVG(link), nil
}

// Request implements ui.State.
func (u *uiState) Request(ctx context.Context, r ui.RequestQuery) (*ui.Explanations, error) {
	if err := u.listed("where a request goes"); err != nil {
		return nil, err
	}
	q := question{allNamespaces: true, parts: []api.ReviewPart{api.ReviewExplanations}, maxPaths: r.Limit, request: requestFlags{given: true, Request: lookup.Request{
		Line: r.Request, Headers: r.Headers, Gateway: r.Gateway, ServerName: r.SNI, ClientNamespace: r.ClientNamespace, Names: requestFlagNames,
	}}}
	if r.Port != 0 {
		q.request.Port = &r.Port
	}
	x, err := u.ask(ctx, q)
	if err != nil {
		return nil, err
	}
	return new(explanationsOf(x)), nil
}

// Violations implements ui.State.
func (u *uiState) Violations(ctx context.Context, limit int) (*ui.Violations, error) {
	if err := u.listed("violations"); err != nil {
		return nil, err
	}
	a, said := u.app.quietApp(nil)
	q, err := u.source.query(question{allNamespaces: true})
	if err != nil {
		return nil, err
	}
	found, err := q.violations(ctx, nil, "")
	if err != nil {
		return nil, err
	}
	found = a.warnUnchecked(found)
	a.warnInactiveConstraints(u.source)
	out := &ui.Violations{Total: len(found), Warnings: said.lines()}
	out.TypeMeta = api.TypeMeta{APIVersion: api.APIVersion, Kind: "ViolationList"}
	out.Items = append([]api.Violation{}, found[:min(limit, len(found))]...)
	return out, nil
}

// Change implements ui.State.
func (u *uiState) Change(ctx context.Context, c ui.Change) (*ui.ChangeAnswer, error) {
	if err := u.listed("trying a change here"); err != nil {
		return nil, fmt.Errorf("%w; use kubectl overrule check", err)
	}
	set, err := manifest.Read([]string{manifest.Stdin}, strings.NewReader(c.Manifest))
	if err != nil {
		return nil, inputError{renamed{err}}
	}
	a, said := u.app.quietApp(nil)
	out := &ui.ChangeAnswer{
		Verdicts: api.VerdictList{TypeMeta: api.TypeMeta{APIVersion: api.APIVersion, Kind: api.KindVerdictList}, Items: []api.Verdict{}},
		Changes:  api.ChangeList{TypeMeta: api.TypeMeta{APIVersion: api.APIVersion, Kind: api.KindChangeList}, Items: []api.Change{}},
	}
	steps, err := a.evaluateIn(ctx, newChange(changeFlags{remove: c.Delete, checkRights: true}, u.in(""), set), guard.EnforceDeny.Allows)
	if err != nil {
		return nil, inputError{renamed{err}}
	}
	for _, e := range steps {
		out.Verdicts.Items = append(out.Verdicts.Items, e.decision.Verdict(guard.EnforceDeny))
		changes := e.differences()
		out.Total += len(changes)
		out.Changes.Items = append(out.Changes.Items, changes[:min(len(changes), c.Limit-len(out.Changes.Items))]...)
	}
	out.Warnings = said.lines()
	return out, nil
}

// renamed is an error about standard input, which stands for the change.
type renamed struct{ error }

// Error returns the message with the change in place of standard input.
func (e renamed) Error() string {
	return strings.ReplaceAll(e.error.Error(), "standard input:", "change, line ")
}

// Unwrap returns the error.
func (e renamed) Unwrap() error { return e.error }

// Manifest implements ui.State.
func (u *uiState) Manifest(ctx context.Context, o ui.ObjectQuery) (string, error) {
	x, err := u.find(about(o))
	if err != nil {
		return "", err
	}
	ref := x.objects()[0]
	content, err := u.content(ctx, ref)
	if err != nil {
		return "", err
	}
	text, err := yaml.Marshal(withoutServerFields(content))
	if err != nil {
		return "", fmt.Errorf("write %s: %w", ref, err)
	}
	return string(text), nil
}

// content returns an object as it is in the manifests or on the cluster.
func (u *uiState) content(ctx context.Context, ref api.Ref) (map[string]any, error) {
	if u.cluster != nil {
		content, err := u.cluster.get(ctx, ref)
		if errors.Is(err, errNotFound) {
			err = inputError{err}
		}
		return content, err
	}
	for _, o := range u.source.set.Objects {
		if o.Ref(u.source.kinds, u.source.namespace) == ref {
			return o.Content(), nil
		}
	}
	return nil, fmt.Errorf("%s %w: another object refers to it", ref, ui.ErrNotFound)
}

// Objects implements ui.State.
func (u *uiState) Objects() []ui.Object { return u.objects }

func uiObject(o snapshot.Object) ui.Object {
	out := ui.Object{Ref: o.Ref()}
	switch o := o.(type) {
	case *gateway.Gateway:
		out.Hostnames = hostnames(o.Listeners)
	case *gateway.ListenerSet:
		out.Hostnames = hostnames(o.Listeners)
	case *gateway.Route:
		out.Hostnames = o.Hostnames
		for _, r := range o.Rules {
			if r.Name != "" {
				out.Rules = append(out.Rules, r.Name)
			}
		}
		for _, p := range o.Parents {
			out.Targets = append(out.Targets, p.Ref())
		}
	case *policykind.Policy:
		out.Policy = true
		for _, b := range o.Blocks {
			for _, r := range b.Rules {
				out.Rules = append(out.Rules, r.Key.String())
			}
		}
		for _, t := range o.Targets {
			out.Targets = append(out.Targets, t.Ref)
		}
	}
	return out
}

func hostnames(listeners []gateway.Listener) []string {
	var out []string
	for _, l := range listeners {
		if l.Hostname != "" && !slices.Contains(out, l.Hostname) {
			out = append(out, l.Hostname)
		}
	}
	return out
}
