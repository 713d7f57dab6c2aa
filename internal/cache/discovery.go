package cache

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"

	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// errNotServed means that a kind of Gateway API is not installed.
var errNotServed = errors.New("not served by the cluster; check that Gateway API is installed")

// requiredKinds are the kinds without which no result is useful, and standardKinds
// those that every release of Gateway API has.
var (
	requiredKinds = []string{"gateways", "httproutes", "grpcroutes"}
	standardKinds = append([]string{"gatewayclasses"}, requiredKinds...)
)

// discovery reads a cluster once.
type discovery struct {
	clients         *clients
	definitions     []*definition
	profiles        *policykind.Profiles
	clusterProfiles map[string]*profile // profiles of the cluster by name
	problems        []Problem           // found while discovering the kinds
	listings        []*listing
	// failedGroups are the groups whose discovery failed.
	failedGroups map[schema.GroupVersion]error
}

// listing is the list of one kind and its result.
type listing struct {
	resource      string // as in Problem.Resource
	lw            *cache.ListWatch
	decode        decoder
	policy        *policykind.Kind // nil for other kinds
	required      bool             // no result is useful without it
	notGatewayAPI bool             // not a kind of Gateway API

	changes []snapshot.Change
	problem error
}

// readDefinitions finds the kinds of the cluster.
func (disc *discovery) readDefinitions(ctx context.Context) error {
	err := eachItem(ctx, disc.clients.definitionsListWatch(), func(obj runtime.Object) error {
		d, err := decodeDefinition(obj)
		if err != nil {
			return err
		}
		disc.definitions = append(disc.definitions, d)
		return nil
	})
	if apierrors.IsForbidden(err) {
		disc.problems = append(disc.problems, Problem{sourceDefinitions,
			fmt.Errorf("%w; policy kinds without a profile are ignored", err)})
		return disc.discoverResources()
	}
	if err != nil {
		return fmt.Errorf("list %s: %w", sourceDefinitions, err)
	}
	return nil
}

func (disc *discovery) definition(name string) *definition {
	i := slices.IndexFunc(disc.definitions, func(d *definition) bool { return d.name == name })
	if i < 0 {
		return nil
	}
	return disc.definitions[i]
}

// readProfiles reads the profiles of the cluster.
func (disc *discovery) readProfiles(ctx context.Context) error {
	d := disc.definition(profilesDefinition)
	if d == nil || !d.served() {
		return nil
	}
	err := eachItem(ctx, disc.clients.policiesListWatch(d.resource), func(obj runtime.Object) error {
		p, err := decodeProfile(obj)
		if err != nil {
			return err
		}
		disc.clusterProfiles[p.Name] = p
		p.addTo(disc.profiles)
		return nil
	})
	switch {
	case apierrors.IsForbidden(err):
		disc.problems = append(disc.problems, Problem{d.name,
			fmt.Errorf("%w; only built-in profiles are used, and kinds without one are ignored", err)})
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("list %s: %w", d.name, err)
	}
	for _, p := range disc.clusterProfiles {
		if problem, ok := p.problem(disc.profiles); ok {
			disc.problems = append(disc.problems, problem)
		}
	}
	return nil
}

// addBuiltins adds the kinds of Gateway API, Namespaces and Services.
func (disc *discovery) addBuiltins() {
	for _, b := range coreKinds {
		disc.listings = append(disc.listings, &listing{resource: b.resource, lw: disc.clients.listWatch(b, b.versions[0]), decode: b.decode})
	}
	for i := range gatewayKinds {
		b := &gatewayKinds[i]
		switch d := disc.definition(b.definition()); {
		case d != nil && d.served():
			disc.listings = append(disc.listings, &listing{
				resource: d.name, lw: disc.clients.listWatch(b, d.resource.Version), decode: b.decode, required: slices.Contains(requiredKinds, b.resource),
			})
		case d != nil && d.err != nil:
			disc.problems = append(disc.problems, Problem{d.name, d.err})
		case slices.Contains(standardKinds, b.resource):
			disc.problems = append(disc.problems, Problem{b.definition(), errNotServed})
		}
	}
}

// addConstraints adds the constraint kinds.
func (disc *discovery) addConstraints() {
	for i := range constraintKinds {
		k := &constraintKinds[i]
		if d := disc.definition(k.definition()); d != nil && d.served() {
			disc.listings = append(disc.listings, &listing{resource: d.name, lw: disc.clients.policiesListWatch(d.resource), decode: k.decodeObject, notGatewayAPI: true})
		}
	}
}

// addPolicies adds the policy kinds.
func (disc *discovery) addPolicies() {
	counts := activeDefinitions(slices.Values(disc.definitions))
	for _, d := range disc.definitions {
		switch policy, err := d.policyKind(disc.profiles); {
		case d.gateway != nil:
		case err != nil:
			disc.problems = append(disc.problems, Problem{d.name, err})
		case policy != nil && counts[d.groupKind] != d:
			disc.problems = append(disc.problems, Problem{d.name, &policykind.DefinedError{Kind: d.groupKind, By: counts[d.groupKind].name}})
		case policy != nil:
			disc.listings = append(disc.listings, &listing{
				resource: d.name, lw: disc.clients.policiesListWatch(d.resource), decode: policyDecoder(policy), policy: policy,
			})
		}
	}
}

func (disc *discovery) list(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxConcurrentLists)
	for _, r := range disc.listings {
		group.Go(func() error { return r.read(ctx) })
	}
	return group.Wait()
}

func (l *listing) read(ctx context.Context) error {
	err := eachItem(ctx, l.lw, func(obj runtime.Object) error {
		o, err := l.decode(obj)
		if err != nil {
			return err
		}
		l.changes = append(l.changes, snapshot.Put(o))
		return nil
	})
	switch {
	case err == nil:
	case apierrors.IsForbidden(err) && !l.required:
		l.problem = err
	case apierrors.IsNotFound(err) && l.policy == nil && !l.notGatewayAPI:
		l.problem = errNotServed
	case apierrors.IsNotFound(err): // its CRD was just deleted
		l.problem = err
	default:
		return fmt.Errorf("list %s: %w", l.resource, err)
	}
	return nil
}

// eachItem lists page by page.
func eachItem(ctx context.Context, lw *cache.ListWatch, visit func(runtime.Object) error) error {
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return lw.ListWithContext(ctx, o)
	})
	return pages.EachListItemWithAlloc(ctx, metav1.ListOptions{}, visit)
}

func (disc *discovery) view() *snapshot.View {
	var kinds []*policykind.Kind
	var changes []snapshot.Change
	for _, r := range disc.listings {
		if r.problem != nil {
			continue
		}
		changes = append(changes, r.changes...)
		if r.policy != nil {
			kinds = append(kinds, r.policy)
		}
	}
	return new(snapshot.View).WithKinds(kinds).With(changes...)
}

func (disc *discovery) allProblems() []Problem {
	out := disc.problems
	for _, r := range disc.listings {
		if r.problem != nil {
			out = append(out, Problem{r.resource, r.problem})
		}
	}
	return sortProblems(out)
}
