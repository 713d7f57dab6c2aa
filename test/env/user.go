package env

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// User is a user of the API server.
type User struct {
	// Name is the user's name in the API server.
	Name string
	// Config is for clients of this user. Copy it before changing it.
	Config *rest.Config
	// Kubeconfig is the path of a kubeconfig file of this user.
	Kubeconfig string

	home   string
	assets assets
}

// AddUser creates a user of the given groups with the rights of the rules in the
// whole cluster. Without rules, the user has only the rights of the groups. It
// may be called by parallel tests.
func (e *Env) AddUser(ctx context.Context, name string, groups []string, rules ...rbacv1.PolicyRule) (*User, error) {
	config, kubeconfig, err := e.plane.sign(name, groups)
	if err != nil {
		return nil, err
	}
	if len(rules) > 0 {
		if err := e.grant(ctx, name, rules); err != nil {
			return nil, err
		}
	}
	return e.newUser(name, config, kubeconfig)
}

// MustAddUser is AddUser for a test; if it fails, so does the test.
func (e *Env) MustAddUser(tb testing.TB, name string, groups []string, rules ...rbacv1.PolicyRule) *User {
	tb.Helper()
	u, err := e.AddUser(tb.Context(), name, groups, rules...)
	require.NoError(tb, err)
	return u
}

// ServiceAccount returns a user with the identity and the rights of that service
// account.
func (e *Env) ServiceAccount(ctx context.Context, namespace, name string) (*User, error) {
	groups := []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace}
	return e.AddUser(ctx, "system:serviceaccount:"+namespace+":"+name, groups)
}

// grant binds a user to a new ClusterRole.
func (e *Env) grant(ctx context.Context, user string, rules []rbacv1.PolicyRule) error {
	client, err := kubernetes.NewForConfig(e.Config)
	if err != nil {
		return fmt.Errorf("grant rights to user %s: %w", user, err)
	}
	meta := metav1.ObjectMeta{Name: "test:" + user}
	role := &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}
	if _, err := client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("grant rights to user %s: %w", user, err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: meta,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	if _, err := client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("grant rights to user %s: %w", user, err)
	}
	return awaitRight(ctx, client, user, rules[0])
}

// awaitRight waits until the API server, which watches what is granted, grants a user what a
// rule allows.
func awaitRight(ctx context.Context, client kubernetes.Interface, user string, rule rbacv1.PolicyRule) error {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user}}
	if len(rule.NonResourceURLs) > 0 {
		review.Spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: rule.NonResourceURLs[0], Verb: rule.Verbs[0]}
	} else {
		resource, subresource, _ := strings.Cut(rule.Resources[0], "/")
		review.Spec.ResourceAttributes = &authorizationv1.ResourceAttributes{Group: rule.APIGroups[0], Resource: resource, Subresource: subresource, Verb: rule.Verbs[0]}
		if len(rule.ResourceNames) > 0 {
			review.Spec.ResourceAttributes.Name = rule.ResourceNames[0]
		}
	}
	err := wait.PollUntilContextTimeout(ctx, Poll/10, Patience, true, func(ctx context.Context) (bool, error) {
		got, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return false, fmt.Errorf("ask for the rights of user %s: %w", user, err)
		}
		return got.Status.Allowed, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the rights of user %s: %w", user, err)
	}
	return nil
}

// newUser creates a home for a user, so that kubectl does not use the cache or
// the kubeconfig of the user who runs the tests.
func (e *Env) newUser(name string, config *rest.Config, kubeconfig []byte) (*User, error) {
	home, err := os.MkdirTemp(e.dir, "home-")
	if err != nil {
		return nil, fmt.Errorf("make a home for user %s: %w", name, err)
	}
	u := &User{Name: name, Config: config, Kubeconfig: home + "/kubeconfig", home: home, assets: e.plane.assets}
	if err := os.WriteFile(u.Kubeconfig, kubeconfig, 0o600); err != nil {
		return nil, fmt.Errorf("write a kubeconfig for user %s: %w", name, err)
	}
	return u, nil
}
