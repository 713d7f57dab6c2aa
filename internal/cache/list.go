package cache

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/snapshot"
)

const (
	// connectTimeout is for the first response of a cluster, requestTimeout for each
	// page of a list.
	connectTimeout = 10 * time.Second
	requestTimeout = time.Minute
	// maxConcurrentLists hides the latency of a distant cluster.
	maxConcurrentLists = 6
)

// List reads a cluster once, with the permissions of cfg: Namespaces, Services, the
// kinds of Gateway API and the policies of all kinds. Kinds are found by the
// CustomResourceDefinitions, or by the discovery API if those may not be listed.
//
// The problems, sorted by resource, are what could not be read and is therefore missing
// from the view. It is an error if Gateways, HTTPRoutes or GRPCRoutes may not be
// listed, if a list fails for another reason, and if the cluster cannot be reached.
func List(ctx context.Context, cfg *rest.Config) (*snapshot.View, []Problem, error) {
	s, err := newDiscovery(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	s.addListings()
	if err := s.list(ctx); err != nil {
		return nil, nil, err
	}
	return s.view(), s.allProblems(), nil
}

// ListProfiles reads only the definitions and the PolicyProfiles of a cluster, once. It
// returns the policy kinds that have a profile and those that have only a label.
// Problems are as in List.
func ListProfiles(ctx context.Context, cfg *rest.Config) ([]api.ProfileInForce, []Problem, error) {
	s, err := newDiscovery(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	return s.kinds.InForce(), s.allProblems(), nil
}

// newDiscovery connects to a cluster and discovers its kinds and how to read them.
func newDiscovery(ctx context.Context, cfg *rest.Config) (*discovery, error) {
	timeout := cfg.Timeout
	if timeout == 0 {
		timeout = requestTimeout
	}
	c, err := newClients(cfg, timeout)
	if err != nil {
		return nil, err
	}
	if err := c.checkReachable(ctx, cfg.Host); err != nil {
		return nil, err
	}
	s := &discovery{clients: c, kinds: snapshot.NewKinds()}
	if err := s.readDefinitions(ctx); err != nil {
		return nil, err
	}
	if err := s.readProfiles(ctx); err != nil {
		return nil, err
	}
	s.recordFailedGroups()
	return s, nil
}

// checkReachable requests the version of the API server, which all users are allowed to
// read.
func (c *clients) checkReachable(ctx context.Context, host string) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	err := c.core.Get().AbsPath("/version").Do(ctx).Error()
	if err == nil || apierrors.IsForbidden(err) {
		return nil // the API server responded
	}
	return fmt.Errorf("reach the cluster at %s: %w; check the kubeconfig and its current context", host, err)
}
