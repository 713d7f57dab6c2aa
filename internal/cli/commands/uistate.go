package commands

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/graph"
	"overrule.dev/overrule/internal/cli/manifest"
	"overrule.dev/overrule/internal/cli/ui"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/lookup"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// maxOutcomes is the number of policies whose outcome is computed for one object.
const maxOutcomes = 100

// uiState answers the page from the objects of one moment, as the commands do.
type uiState struct {
	app      *app
	source   *source
	warnings []string
}

func newUIState(a *app, s *source, said []string) *uiState {
	return &uiState{app: a, source: s, warnings: said}
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

// in returns the source with another namespace, and kinds of its own.
func (u *uiState) in(namespace string) *source {
	s := *u.source
	s.kinds = s.kinds.Clone()
	if namespace != "" {
		s.namespace, s.namespaceSet = namespace, true
	}
	return &s
}

// find returns the query for an object.
func (u *uiState) find(o ui.ObjectQuery) (*query, error) {
	s := u.in(o.Namespace)
	objects, err := s.find(o.Kind, o.Name, false)
	if err != nil {
		return nil, inputError{err}
	}
	return s.newQuery(true, objects...), nil
}

// Object implements ui.State.
func (u *uiState) Object(ctx context.Context, o ui.ObjectQuery) (*ui.ObjectAnswer, error) {
	q, err := u.find(o)
	if err != nil {
		return nil, err
	}
	out := &ui.ObjectAnswer{Object: uiObject(q.Objects[0]), Namespaces: make(map[string]map[string]string)}
	onPaths, err := q.explanations(ctx, o.Limit, &out.Explanations)
	if err != nil {
		return nil, err
	}
	policies := q.NamedPolicies()
	if len(policies) == 0 {
		q.AddTargeting(onPaths)
		policies = onPaths
	}
	sorted := policies.Sorted()
	if out.Outcomes, err = q.Outcomes(ctx, sorted[:min(maxOutcomes, len(sorted))]); err != nil {
		return nil, err
	}
	for p := range onPaths {
		out.Namespaces[p.Namespace] = maps.Clone(q.view.NamespaceLabels(p.Namespace))
	}
	return out, nil
}

// explanations explains the first paths of the query. It returns the policies on them.
func (q *query) explanations(ctx context.Context, limit int, out *ui.Explanations) (lookup.PolicySet, error) {
	out.TypeMeta = api.TypeMeta{APIVersion: api.APIVersion, Kind: api.KindExplanationList}
	out.Items, out.Request = []api.Explanation{}, q.Request.API()
	onPaths := make(lookup.PolicySet)
	err := q.Walk(ctx, func(e *effective.Effective) {
		if !q.Matches(e) {
			return
		}
		if out.Total++; out.Total > limit {
			return
		}
		if x, ok := e.Explain(nil); ok {
			out.Items = append(out.Items, x)
		}
		for i := range e.Outcomes {
			onPaths.Add(q.view.Get(e.Ref(e.Outcomes[i].Policy)))
		}
	})
	slices.SortFunc(out.Items, effective.CompareExplanations)
	return onPaths, err
}

// Picture implements ui.State.
func (u *uiState) Picture(ctx context.Context, o ui.ObjectQuery, link func(kind, namespace, name string) string) (string, error) {
	q, err := u.find(o)
	if err != nil {
		return "", err
	}
	b, err := q.graph(ctx)
	if err != nil {
		return "", err
	}
	return b.Graph(graph.Options{More: "Open an object to see more."}).SVG(link), nil
}

// Request implements ui.State.
func (u *uiState) Request(ctx context.Context, r ui.RequestQuery) (*ui.Explanations, error) {
	flags := requestFlags{
		request: r.Request, headers: r.Headers, gateway: r.Gateway, port: r.Port, sni: r.SNI,
		clientNamespace: r.ClientNamespace, given: true, portGiven: r.Port != 0,
	}
	s := u.in("")
	found, err := s.findRequest(&flags, true)
	if err != nil {
		return nil, inputError{err}
	}
	q := s.newQuery(true)
	q.Request = found
	out := &ui.Explanations{}
	_, err = q.explanations(ctx, r.Limit, out)
	return out, err
}

// Violations implements ui.State.
func (u *uiState) Violations(ctx context.Context, limit int) (*ui.Violations, error) {
	a, said := u.app.quietApp(nil)
	s := u.in("")
	q := s.newQuery(true)
	found, err := q.violations(ctx, nil)
	if err != nil {
		return nil, err
	}
	found = a.warnUnchecked(found)
	a.warnInactiveConstraints(s)
	out := &ui.Violations{Total: len(found), Warnings: said.lines()}
	out.TypeMeta = api.TypeMeta{APIVersion: api.APIVersion, Kind: "ViolationList"}
	out.Items = append([]api.Violation{}, found[:min(limit, len(found))]...)
	return out, nil
}

// Change implements ui.State.
func (u *uiState) Change(ctx context.Context, c ui.Change) (*ui.ChangeAnswer, error) {
	set, err := manifest.Read([]string{manifest.Stdin}, strings.NewReader(c.Manifest))
	if err != nil {
		return nil, inputError{renamed{err}}
	}
	a, said := u.app.quietApp(nil)
	out := &ui.ChangeAnswer{
		Verdicts: api.VerdictList{TypeMeta: api.TypeMeta{APIVersion: api.APIVersion, Kind: api.KindVerdictList}, Items: []api.Verdict{}},
		Changes:  api.ChangeList{TypeMeta: api.TypeMeta{APIVersion: api.APIVersion, Kind: api.KindChangeList}, Items: []api.Change{}},
	}
	flags := changeFlags{remove: c.Delete, checkRights: true}
	steps, err := a.evaluateSet(ctx, flags, u.in(""), set, guard.EnforceDeny.Allows)
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
	q, err := u.find(o)
	if err != nil {
		return "", err
	}
	ref := q.Objects[0].Ref()
	content, err := u.content(ctx, q.source, ref)
	if err != nil {
		return "", err
	}
	return manifestText(ref, content)
}

// manifestText returns an object as YAML, without what the API server adds.
func manifestText(ref api.Ref, content map[string]any) (string, error) {
	content = maps.Clone(content)
	delete(content, "status")
	if m, ok := content["metadata"].(map[string]any); ok {
		m = maps.Clone(m)
		for _, name := range []string{"managedFields", "uid", "resourceVersion", "generation", "creationTimestamp", "selfLink"} {
			delete(m, name)
		}
		content["metadata"] = m
	}
	text, err := yaml.Marshal(content)
	if err != nil {
		return "", fmt.Errorf("write %s: %w", ref, err)
	}
	return string(text), nil
}

// content returns an object as it is in the manifests or on the cluster.
func (u *uiState) content(ctx context.Context, s *source, ref api.Ref) (map[string]any, error) {
	if s.set == nil {
		return u.app.getFromCluster(ctx, ref)
	}
	for _, o := range s.set.Objects {
		if o.Ref(s.kinds, u.source.namespace) == ref {
			return o.Content(), nil
		}
	}
	return nil, fmt.Errorf("%s %w: another object refers to it", ref, ui.ErrNotFound)
}

// getFromCluster reads one object of a cluster.
func (a *app) getFromCluster(ctx context.Context, ref api.Ref) (map[string]any, error) {
	config, err := a.clusterConfig()
	if err != nil {
		return nil, err
	}
	mapper, err := a.config.ToRESTMapper()
	if err != nil {
		return nil, fmt.Errorf("discover the resources of the cluster: %w", err)
	}
	mapping, err := mapper.RESTMapping(schema.GroupKind{Group: ref.Group, Kind: ref.Kind})
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("%s %w", ref, ui.ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("find the resource of kind %s: %w", ref.PolicyKind(), err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	var resource dynamic.ResourceInterface = client.Resource(mapping.Resource)
	if ref.Namespace != "" {
		resource = client.Resource(mapping.Resource).Namespace(ref.Namespace)
	}
	o, err := resource.Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", ref, err)
	}
	return o.Object, nil
}

// Objects implements ui.State.
func (u *uiState) Objects() []ui.Object {
	var out []ui.Object
	view := u.source.view
	for _, kind := range hierarchyKinds() {
		for o := range view.Objects(kind) {
			out = append(out, uiObject(o))
		}
	}
	for _, kind := range view.Kinds() {
		for p := range view.Policies(kind.Ref()) {
			out = append(out, uiObject(p))
		}
	}
	slices.SortFunc(out, func(a, b ui.Object) int { return api.CompareRefs(a.Ref, b.Ref) })
	return out
}

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
