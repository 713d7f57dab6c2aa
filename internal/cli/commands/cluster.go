package commands

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metaunstructured "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cache"
	"overrule.dev/overrule/internal/snapshot"
)

// storedObjects are the undecoded objects of a cluster.
type storedObjects interface {
	// get reads an object. The error of one that does not exist isAbsent.
	get(ctx context.Context, ref api.Ref) (map[string]any, error)
	// list lists the objects of a kind in a namespace, or with "" in all; none if it is not
	// installed.
	list(ctx context.Context, kind api.PolicyKind, namespace string) ([]map[string]any, error)
}

// connection leads to the cluster of the kubeconfig.
type connection struct {
	config *genericclioptions.ConfigFlags
	// list lists the objects of a cluster.
	list func(context.Context, *rest.Config) (*snapshot.View, []cache.Problem, error)
	// listProfiles lists the profiles in effect on a cluster.
	listProfiles func(context.Context, *rest.Config) ([]api.ProfileInForce, []cache.Problem, error)
	// stored are the undecoded objects of a cluster; nil means those of the kubeconfig's.
	stored storedObjects
}

func (c *connection) storedObjects() (storedObjects, error) {
	if c.stored != nil {
		return c.stored, nil
	}
	return c.newCluster(nil)
}

// isAbsent reports whether an error says that an object or its kind does not exist.
func isAbsent(err error) bool { return apierrors.IsNotFound(err) || errors.Is(err, errNotFound) }

// cluster is a cluster, with the rights of the user.
type cluster struct {
	client    dynamic.Interface
	mapper    meta.RESTMapper
	namespace string
}

// newCluster returns the cluster of the kubeconfig. Its warnings go to a handler, nil for
// none.
func (c *connection) newCluster(warnings rest.WarningHandler) (*cluster, error) {
	config, err := c.clusterConfig()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.WarningHandler = warnings
	out := &cluster{}
	if out.client, err = dynamic.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	if out.mapper, err = c.config.ToRESTMapper(); err != nil {
		return nil, fmt.Errorf("discover the resources of the cluster: %w", err)
	}
	if out.namespace, _, err = c.config.ToRawKubeConfigLoader().Namespace(); err != nil {
		return nil, fmt.Errorf("read the namespace from the kubeconfig: %w", err)
	}
	return out, nil
}

// resource returns the resource of a kind, in a namespace if it has one. The error is
// meta.IsNoMatchError if the kind is not installed.
func (c *cluster) resource(kind schema.GroupKind, namespace string, versions ...string) (dynamic.ResourceInterface, error) {
	mapping, err := c.mapper.RESTMapping(kind, versions...)
	if err != nil {
		return nil, fmt.Errorf("find the resource of kind %s: %w", api.PolicyKind{Group: kind.Group, Kind: kind.Kind}, err)
	}
	if namespace != "" && mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return c.client.Resource(mapping.Resource).Namespace(namespace), nil
	}
	return c.client.Resource(mapping.Resource), nil
}

// get implements storedObjects.
func (c *cluster) get(ctx context.Context, ref api.Ref) (map[string]any, error) {
	resource, err := c.resource(schema.GroupKind{Group: ref.Group, Kind: ref.Kind}, ref.Namespace)
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("%s %w", ref, errNotFound)
	}
	if err != nil {
		return nil, err
	}
	o, err := resource.Get(ctx, ref.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", ref, err)
	}
	return o.Object, nil
}

// list implements storedObjects.
func (c *cluster) list(ctx context.Context, kind api.PolicyKind, namespace string) ([]map[string]any, error) {
	resource, err := c.resource(schema.GroupKind{Group: kind.Group, Kind: kind.Kind}, namespace)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []map[string]any
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return resource.List(ctx, options)
	})
	err = pages.EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
		out = append(out, content)
		return err
	})
	return out, err
}

// names returns the objects of a kind in the namespace, none if the user is not allowed to
// list them or the kind is not installed.
func (c *cluster) names(ctx context.Context, kind api.PolicyKind) []api.Ref {
	objects, err := c.list(ctx, kind, c.namespace)
	if err != nil {
		return nil
	}
	var out []api.Ref
	for _, o := range objects {
		object := metaunstructured.Unstructured{Object: o}
		out = append(out, api.Ref{Group: kind.Group, Kind: kind.Kind, Namespace: object.GetNamespace(), Name: object.GetName()})
	}
	return out
}
