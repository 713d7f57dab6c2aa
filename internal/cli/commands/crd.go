package commands

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/manifest"
)

// schema returns the schema of a kind from its CustomResourceDefinition on the
// cluster; nil if there is none or it is not readable.
func (a *app) schema(ctx context.Context, ref api.PolicyKind) (*apiextensionsv1.JSONSchemaProps, error) {
	content, err := a.crdContent(ctx, ref)
	if content == nil || err != nil {
		return nil, err
	}
	set, err := manifest.FromObjects("the cluster", []map[string]any{content})
	if err != nil {
		return nil, err
	}
	d, err := set.Objects[0].Definition()
	if err != nil {
		return nil, err
	}
	return manifest.SchemaOf(&d.CustomResourceDefinition), nil
}

// crdContent returns the CustomResourceDefinition of a kind on the cluster, nil if there
// is none or it is not readable.
func (a *app) crdContent(ctx context.Context, ref api.PolicyKind) (map[string]any, error) {
	config, err := a.clusterConfig()
	if err != nil {
		return nil, err
	}
	_, resource := a.resource(ref)
	if resource == "" {
		resource = plural(ref)
	}
	getCRD := a.getCRD
	if getCRD == nil {
		getCRD = a.getCRDFromCluster
	}
	return getCRD(ctx, config, resource+"."+ref.Group)
}

// getCRDFromCluster reads a CustomResourceDefinition from the cluster; nil if
// there is none. It prints a warning and returns nil if the user is not allowed
// to read it.
func (a *app) getCRDFromCluster(ctx context.Context, config *rest.Config, name string) (map[string]any, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create client: %w", err)
	}
	definitions := client.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	o, err := definitions.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case apierrors.IsForbidden(err):
		a.warnf("skipping the schema of %s: %v", name, err)
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get customresourcedefinition %s: %w", name, err)
	}
	return o.Object, nil
}
