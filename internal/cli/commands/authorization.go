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

// authorization returns the right to remove overrides, and the user who makes
// the change. On a cluster that is the user of the kubeconfig or of --as, and
// their rights come from the API server. With manifests no one is allowed to
// unless --may-override is set, and the user is that of --as or nil. Commands
// that deny nothing send no access reviews.
func (r *reader) authorization(ctx context.Context, s *source, f changeFlags) (guard.Permissions, *authenticationv1.UserInfo, error) {
	if s.set != nil || !f.checkRights {
		var fixed guard.Permissions = rights.Fixed(f.mayOverride || !f.checkRights, s.resource)
		if len(f.against)+len(f.revisions.from) > 0 {
			fixed = approvable{fixed}
		}
		return fixed, r.impersonatedUser(), nil
	}
	config, err := r.clusterConfig()
	if err != nil {
		return nil, nil, err
	}
	client, err := authorizationv1client.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("create client: %w", err)
	}
	return rights.Self(client, r.resource), r.currentUser(ctx, config), nil
}

// approvable is the right to remove overrides of a command with the flag --may-override: a
// pipeline does not know who is allowed to.
type approvable struct{ guard.Permissions }

const approvalAdvice = "; if the change is approved, set --may-override"

// Check adds how to let an approved change pass.
func (r approvable) Check(policy api.Ref) string {
	return r.Permissions.Check(policy) + approvalAdvice
}

// currentUser returns the user of the kubeconfig, or nil with a warning if the
// API server does not report it: only constraints that read request.userInfo
// need it.
func (r *reader) currentUser(ctx context.Context, config *rest.Config) *authenticationv1.UserInfo {
	review := &authenticationv1.SelfSubjectReview{}
	client, err := authenticationv1client.NewForConfig(config)
	if err == nil {
		review, err = client.SelfSubjectReviews().Create(ctx, review, metav1.CreateOptions{})
	}
	if err != nil {
		r.warnf("cannot determine the current user, evaluating constraints without request.userInfo: %v", err)
		return nil
	}
	return &review.Status.UserInfo
}

// impersonatedUser returns the user of --as, --as-uid and --as-group, nil
// without --as.
func (c *connection) impersonatedUser() *authenticationv1.UserInfo {
	if *c.config.Impersonate == "" {
		return nil
	}
	return &authenticationv1.UserInfo{
		Username: *c.config.Impersonate, UID: *c.config.ImpersonateUID, Groups: *c.config.ImpersonateGroup,
	}
}

// resource returns the group and the plural name of a kind, from its
// CustomResourceDefinition.
func (s *source) resource(kind api.PolicyKind) (group, plural string) {
	if names := s.kinds.Names(kind); len(names) > 0 {
		plural = names[0]
	}
	return kind.Group, plural
}

// resource returns the group and the plural name of a kind from the cluster's
// discovery, or empty strings if it has no such kind.
func (c *connection) resource(kind api.PolicyKind) (group, plural string) {
	mapper, err := c.config.ToRESTMapper()
	if err != nil {
		return "", ""
	}
	mapping, err := mapper.RESTMapping(schema.GroupKind{Group: kind.Group, Kind: kind.Kind})
	if err != nil {
		return "", ""
	}
	return mapping.Resource.Group, mapping.Resource.Resource
}
