package watch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"

	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/store"
)

const (
	// reachTimeout is for the first answer of a cluster, requestTimeout for
	// each page of a list.
	reachTimeout   = 10 * time.Second
	requestTimeout = time.Minute
	// parallel lists at once: enough to hide the way to a cluster far away.
	parallel = 6
)

// errNotServed tells that a kind of Gateway API is not installed.
var errNotServed = errors.New("the cluster does not serve it; is Gateway API installed?")

// List reads a cluster once, with the rights of whoever the configuration is
// of: the hierarchy and the policies of every kind that it finds, by the
// CustomResourceDefinitions, or by discovery where those may not be listed.
//
// The problems, by resource, are what could not be read and so is missing from
// the view. It is an error if Gateways or routes are among what is forbidden,
// if anything fails for another reason, and if the cluster cannot be reached.
func List(ctx context.Context, cfg *rest.Config) (*store.View, []Problem, error) {
	timeout := cfg.Timeout
	if timeout == 0 {
		timeout = requestTimeout
	}
	c, err := newClients(cfg, timeout)
	if err != nil {
		return nil, nil, err
	}
	known, err := builtinProfiles()
	if err != nil {
		return nil, nil, err
	}
	if err := c.reach(ctx, cfg.Host); err != nil {
		return nil, nil, err
	}
	s := &survey{clients: c, profiles: known}
	if err := s.find(ctx); err != nil {
		return nil, nil, err
	}
	if err := s.list(ctx); err != nil {
		return nil, nil, err
	}
	return s.view(), s.found(), nil
}

// reach asks for the version of the API server, which everyone may.
func (c *clients) reach(ctx context.Context, host string) error {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	err := c.core.Get().AbsPath("/version").Do(ctx).Error()
	if err == nil || apierrors.IsForbidden(err) {
		return nil // even a refusal is an answer
	}
	return fmt.Errorf("reach the cluster at %s: %w; check the kubeconfig and its current context", host, err)
}

// survey is one reading of a cluster.
type survey struct {
	clients  *clients
	profiles profiles
	problems []Problem // of finding the kinds
	readings []*reading
}

// reading is one kind that is read, and what came of it.
type reading struct {
	resource string // as problems name it
	lw       *cache.ListWatch
	decode   decoder
	policy   *policykind.Kind // nil for the hierarchy's kinds
	vital    bool             // nothing can be said without it

	changes []store.Change
	problem error
}

// find finds the kinds to read.
func (s *survey) find(ctx context.Context) error {
	s.hierarchy()
	err := each(ctx, s.clients.allDefinitions(), func(obj runtime.Object) error {
		d, err := s.profiles.decode(obj)
		if err != nil {
			return err
		}
		s.policies(d)
		return nil
	})
	if apierrors.IsForbidden(err) {
		s.problems = append(s.problems, Problem{sourceDefinitions,
			fmt.Errorf("%w; policy kinds that are known by their label alone are left out", err)})
		return s.discover()
	}
	if err != nil {
		return fmt.Errorf("list %s: %w", sourceDefinitions, err)
	}
	return nil
}

func (s *survey) hierarchy() {
	s.readings = append(s.readings, &reading{
		resource: sourceNamespaces, lw: s.clients.all(&namespaces), decode: namespaces.decode,
	})
	for i := range gatewayKinds {
		b := &gatewayKinds[i]
		s.readings = append(s.readings, &reading{
			resource: b.definition(), lw: s.clients.all(b), decode: b.decode, vital: b.resource != "gatewayclasses",
		})
	}
}

// policies adds a kind of policies, if d defines one.
func (s *survey) policies(d *definition) {
	switch {
	case d.policy != nil:
		s.readings = append(s.readings, &reading{
			resource: d.name, lw: s.clients.allPolicies(d.resource), decode: policies(d.policy), policy: d.policy,
		})
	case d.err != nil && !errors.Is(d.err, errVersion): // of Gateway API's kinds, the list itself tells
		s.problems = append(s.problems, Problem{d.name, d.err})
	}
}

func (s *survey) list(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for _, r := range s.readings {
		group.Go(func() error { return r.read(ctx) })
	}
	return group.Wait()
}

func (r *reading) read(ctx context.Context) error {
	err := each(ctx, r.lw, func(obj runtime.Object) error {
		o, err := r.decode(obj)
		if err != nil {
			return err
		}
		r.changes = append(r.changes, store.Put(o))
		return nil
	})
	switch {
	case err == nil:
	case apierrors.IsForbidden(err) && !r.vital:
		r.problem = err
	case apierrors.IsNotFound(err) && r.policy == nil:
		r.problem = errNotServed
	case apierrors.IsNotFound(err): // its CRD was deleted a moment ago
		r.problem = err
	default:
		return fmt.Errorf("list %s: %w", r.resource, err)
	}
	return nil
}

// each lists page by page.
func each(ctx context.Context, lw *cache.ListWatch, take func(runtime.Object) error) error {
	pages := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return lw.ListWithContext(ctx, o)
	})
	return pages.EachListItemWithAlloc(ctx, metav1.ListOptions{}, take)
}

func (s *survey) view() *store.View {
	var kinds []*policykind.Kind
	var changes []store.Change
	for _, r := range s.readings {
		if r.problem != nil {
			continue
		}
		changes = append(changes, r.changes...)
		if r.policy != nil {
			kinds = append(kinds, r.policy)
		}
	}
	return new(store.View).WithKinds(kinds).With(changes...)
}

func (s *survey) found() []Problem {
	out := s.problems
	for _, r := range s.readings {
		if r.problem != nil {
			out = append(out, Problem{r.resource, r.problem})
		}
	}
	return sortProblems(out)
}
