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
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"

	api "overrule.dev/overrule/api/v1alpha1"
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
	clients  *clients
	kinds    *snapshot.Kinds
	problems []Problem // found while discovering the kinds
	listings []*listing
	// failedGroups are the groups whose discovery failed.
	failedGroups map[schema.GroupVersion]error
}

// listing is the list of one kind and its result.
type listing struct {
	resource string // as in Problem.Resource
	lw       *cache.ListWatch
	decode   decoder
	policy   *policykind.Kind // nil for other kinds
	builtin  *builtin         // nil for policies

	changes []snapshot.Change
	problem error
}

// readDefinitions finds the kinds of the cluster.
func (disc *discovery) readDefinitions(ctx context.Context) error {
	found, err := listAll(ctx, disc.clients.definitionsListWatch(), decodeDefinition)
	if apierrors.IsForbidden(err) {
		disc.problems = append(disc.problems, Problem{sourceDefinitions,
			fmt.Errorf("%w; policy kinds without a profile are ignored", err)})
		found, err = disc.discoverResources()
		if err != nil {
			return err
		}
	}
	if err != nil {
		return fmt.Errorf("list %s: %w", sourceDefinitions, err)
	}
	disc.kinds = disc.kinds.With(found...)
	return nil
}

// decodeDefinition is snapshot.ParseDefinition for objects from the API server.
var decodeDefinition = typedDecoder(snapshot.ParseDefinition)

// discoverResources finds the kinds with the discovery API.
func (disc *discovery) discoverResources() ([]snapshot.Change, error) {
	lists, err := disc.clients.discovery.ServerPreferredResources()
	if partial := new(clientdiscovery.ErrGroupDiscoveryFailed); errors.As(err, &partial) {
		disc.failedGroups = partial.Groups
	} else if err != nil {
		return nil, fmt.Errorf("discover the policy kinds: %w", err)
	}
	return definitionsFromResources(lists), nil
}

// recordFailedGroups records a problem for each API group whose discovery failed and
// that a policy kind belongs to.
func (disc *discovery) recordFailedGroups() {
	for gv, err := range disc.failedGroups {
		if slices.ContainsFunc(disc.kinds.InForce(), func(p api.ProfileInForce) bool { return p.PolicyKind.Group == gv.Group }) {
			disc.problems = append(disc.problems, Problem{gv.String(), err})
		}
	}
}

// definitionsFromResources converts the resource lists of the discovery API.
func definitionsFromResources(lists []*metav1.APIResourceList) []snapshot.Change {
	var out []snapshot.Change
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue // no profile can name such a group
		}
		for i := range list.APIResources {
			if r := &list.APIResources[i]; slices.Contains(r.Verbs, "list") {
				out = append(out, snapshot.Put(snapshot.NewDefinition(gv.WithResource(r.Name), r.Kind, r.Namespaced)))
			}
		}
	}
	return out
}

// readProfiles reads the profiles of the cluster.
func (disc *discovery) readProfiles(ctx context.Context) error {
	d := disc.kinds.DefinitionNamed(profilesDefinition)
	if d == nil || !d.Served() {
		return nil
	}
	found, err := listAll(ctx, disc.clients.policiesListWatch(d.Resource), decodeProfile)
	switch {
	case apierrors.IsForbidden(err):
		disc.problems = append(disc.problems, Problem{d.Name,
			fmt.Errorf("%w; only built-in profiles are used, and kinds without one are ignored", err)})
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("list %s: %w", d.Name, err)
	}
	disc.kinds = disc.kinds.With(found...)
	disc.problems = append(disc.problems, profileProblems(disc.kinds)...)
	return nil
}

// addListings adds what is to be listed: Namespaces, Services, and all kinds that are read.
func (disc *discovery) addListings() {
	for i := range coreKinds {
		b := &coreKinds[i]
		disc.listings = append(disc.listings, &listing{resource: b.resource, lw: disc.clients.listWatch(b, b.versions[0]), decode: b.decode, builtin: b})
	}
	for _, resource := range standardKinds {
		name := resource + "." + api.GatewayGroup
		if d := disc.kinds.DefinitionNamed(name); d == nil || !d.Served() && d.Err == nil {
			disc.problems = append(disc.problems, Problem{name, errNotServed})
		}
	}
	for _, d := range disc.kinds.Definitions() {
		policy, err := disc.kinds.Policy(d)
		l := &listing{resource: d.Name, policy: policy, builtin: fixedKindOf(d), lw: disc.clients.policiesListWatch(d.Resource)}
		switch {
		case err != nil:
			disc.problems = append(disc.problems, Problem{d.Name, err})
			continue
		case policy != nil:
			l.decode = policyDecoder(policy)
		case !d.Served():
			continue
		case l.builtin != nil:
			l.lw, l.decode = disc.clients.listWatch(l.builtin, d.Resource.Version), l.builtin.decode
		case disc.kinds.Selectable(d.Kind):
			l.decode = labelDecoder(d.Kind)
		default:
			continue
		}
		disc.listings = append(disc.listings, l)
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

func (l *listing) read(ctx context.Context) (err error) {
	l.changes, err = listAll(ctx, l.lw, l.decode)
	switch {
	case err == nil:
	case apierrors.IsForbidden(err) && (l.builtin == nil || !slices.Contains(requiredKinds, l.builtin.resource)):
		l.problem = err
	case apierrors.IsNotFound(err) && l.builtin != nil && l.builtin.example != nil:
		l.problem = errNotServed
	case apierrors.IsNotFound(err): // its CRD was just deleted
		l.problem = err
	default:
		return fmt.Errorf("list %s: %w", l.resource, err)
	}
	return nil
}

// listAll lists page by page, and puts all objects.
func listAll(ctx context.Context, lw *cache.ListWatch, decode decoder) (out []snapshot.Change, err error) {
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return lw.ListWithContext(ctx, o)
	})
	err = pages.EachListItemWithAlloc(ctx, metav1.ListOptions{}, func(obj runtime.Object) error {
		o, err := decode(obj)
		if err == nil {
			out = append(out, snapshot.Put(o))
		}
		return err
	})
	return out, err
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
	return new(snapshot.View).WithKindConfig(disc.kinds).WithKinds(kinds).With(changes...)
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
