package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"overrule.dev/overrule/internal/coordination"
	"overrule.dev/overrule/test/env"
)

// aggregated selects the roles that are aggregated into the server's reader role.
const aggregated = "overrule.dev/aggregate-to-reader=true"

// ErrInstall means that the API server rejected a manifest of deploy.
var ErrInstall = errors.New("install the server's CRD, namespace, account and rights")

// install applies the CRDs, the namespace, the account and the rights of deploy,
// as the user who installs the server would, and returns the account.
func install(ctx context.Context, e *env.Env, root string) (*env.User, error) {
	if err := e.InstallCRDs(filepath.Join(root, "deploy", "crds")); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInstall, err)
	}
	if err := applyBase(ctx, e, filepath.Join(root, "deploy", "base")); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInstall, err)
	}
	clients, err := kubernetes.NewForConfig(e.Config)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInstall, err)
	}
	if err := grantExampleKinds(ctx, clients); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInstall, err)
	}
	if err := aggregate(ctx, clients); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInstall, err)
	}
	if err := releaseLease(ctx, clients); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInstall, err)
	}
	return e.ServiceAccount(ctx, Namespace, Name)
}

// applyBase applies, server-side, the objects of a folder that the server needs:
// its namespace first, then its account and rights.
func applyBase(ctx context.Context, e *env.Env, base string) error {
	rights, err := filepath.Glob(filepath.Join(base, "rbac-*.yaml"))
	if err != nil {
		return err
	}
	c, err := client.New(e.Config, client.Options{})
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	for _, file := range append([]string{filepath.Join(base, "namespace.yaml"), filepath.Join(base, "serviceaccount.yaml"), filepath.Join(base, "reviews.yaml")}, rights...) {
		objects, err := read(file)
		if err != nil {
			return err
		}
		for _, o := range objects {
			if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner("kubectl")); err != nil {
				return fmt.Errorf("apply %s: %w", file, err)
			}
		}
	}
	return nil
}

// read returns the objects of a manifest.
func read(file string) ([]*unstructured.Unstructured, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	var out []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(f, 4096); ; {
		o := &unstructured.Unstructured{}
		if err := decoder.Decode(&o.Object); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		if len(o.Object) > 0 {
			out = append(out, o)
		}
	}
}

// grantExampleKinds adds the kinds of examples/crds to the reader role, as the
// docs describe for other kinds.
func grantExampleKinds(ctx context.Context, client kubernetes.Interface) error {
	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{
			Name:   "overrule-reader-examples",
			Labels: map[string]string{"overrule.dev/aggregate-to-reader": "true"},
		},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"policies.example.com"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"},
		}},
	}
	_, err := client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
	return ignoreExisting(err)
}

// releaseLease creates the Lease as a server leaves it that has shut down, unless there
// is one: the first server of a control plane does not wait for the lease duration.
func releaseLease(ctx context.Context, client kubernetes.Interface) error {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: Name, Annotations: map[string]string{coordination.AnnotationReleased: "none"}}}
	_, err := client.CoordinationV1().Leases(Namespace).Create(ctx, lease, metav1.CreateOptions{})
	return ignoreExisting(err)
}

// aggregate does what the controller manager of a cluster does, which does not
// always run here: the account gets the rights of every role that is aggregated
// into the reader role.
func aggregate(ctx context.Context, client kubernetes.Interface) error {
	roles, err := client.RbacV1().ClusterRoles().List(ctx, metav1.ListOptions{LabelSelector: aggregated})
	if err != nil {
		return err
	}
	for _, role := range roles.Items {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "test:" + role.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: Name}},
		}
		_, err := client.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
		if err := ignoreExisting(err); err != nil {
			return err
		}
	}
	return nil
}

func ignoreExisting(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
