package commands

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	authenticationv1client "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/rights"
)

// authority returns who may remove overrides, and who makes the change: on a
// cluster the user of the kubeconfig, or whom --as names; with manifests nobody
// may unless the flag says so, and the user is whom --as names, or nobody.
// Nobody is asked where nothing is denied.
func (a *app) authorization(ctx context.Context, s *source, f changeFlags) (guard.Rights, *authenticationv1.UserInfo, error) {
	if s.set != nil || !f.checkRights {
		return rights.Fixed(f.mayOverride || !f.checkRights, s.resource), a.impersonatedUser(), nil
	}
	config, err := a.clusterConfig()
	if err != nil {
		return nil, nil, err
	}
	client, err := authorizationv1client.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("make a client: %w", err)
	}
	return rights.Self(client, a.resource), a.currentUser(ctx, config), nil
}

// self returns who talks to the cluster. Only constraints may want to know, so
// that it is no error if it cannot be found out.
func (a *app) currentUser(ctx context.Context, config *rest.Config) *authenticationv1.UserInfo {
	ask := a.whoAmI
	if ask == nil {
		ask = selfSubjectReview
	}
	user, err := ask(ctx, config)
	if err != nil {
		a.warnf("who you are cannot be found out, and constraints that ask for it are judged as for nobody: %v", err)
	}
	return user
}

// review asks the API server who its user is.
func selfSubjectReview(ctx context.Context, config *rest.Config) (*authenticationv1.UserInfo, error) {
	client, err := authenticationv1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	answer, err := client.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	return &answer.Status.UserInfo, nil
}

// impersonated returns the user whom the flags name, nil for none.
func (a *app) impersonatedUser() *authenticationv1.UserInfo {
	if *a.config.Impersonate == "" {
		return nil
	}
	return &authenticationv1.UserInfo{
		Username: *a.config.Impersonate, UID: *a.config.ImpersonateUID, Groups: *a.config.ImpersonateGroup,
	}
}

// resource returns the plural name of a kind as its definition has it.
func (s *source) resource(kind api.PolicyKind) (group, plural string) {
	if names := s.kinds.Names(kind); len(names) > 0 {
		plural = names[0]
	}
	return kind.Group, plural
}

// resource returns the plural name of a kind as the cluster has it.
func (a *app) resource(kind api.PolicyKind) (group, plural string) {
	mapper, err := a.config.ToRESTMapper()
	if err != nil {
		return "", ""
	}
	mapping, err := mapper.RESTMapping(schema.GroupKind{Group: kind.Group, Kind: kind.Kind})
	if err != nil {
		return "", ""
	}
	return mapping.Resource.Group, mapping.Resource.Resource
}
