package server

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"overrule.dev/overrule/test/env"
)

// LetRefresh grants the rights of components/refresh until the test ends, with or
// without those for policy kinds, as the controller manager of a cluster does.
func LetRefresh(tb testing.TB, e *env.Env, kinds bool) {
	tb.Helper()
	root, err := env.Repository(tb.Context())
	require.NoError(tb, err)
	apply := func(file string) {
		got := e.Kubectl("apply", "--server-side", "-f", file)
		require.Zero(tb, got.Code, got.Stderr)
	}
	apply(filepath.Join(root, "deploy/base/namespace.yaml"))
	for _, file := range []string{"rbac.yaml", "rbac-kinds.yaml"} {
		file = filepath.Join(root, "deploy/components/refresh", file)
		apply(file)
		tb.Cleanup(func() { e.Kubectl("delete", "-f", file) })
	}
	if !kinds {
		return
	}
	client, err := kubernetes.NewForConfig(e.Config)
	require.NoError(tb, err)
	roles, err := client.RbacV1().ClusterRoles().List(tb.Context(), metav1.ListOptions{LabelSelector: "overrule.dev/aggregate-to-refresher=true"})
	require.NoError(tb, err)
	for _, role := range roles.Items {
		name := "test:" + role.Name
		_, err := client.RbacV1().ClusterRoleBindings().Create(tb.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: "overrule-refresher"}},
		}, metav1.CreateOptions{})
		require.NoError(tb, err)
		tb.Cleanup(func() { e.Kubectl("delete", "clusterrolebinding", name) })
	}
}
