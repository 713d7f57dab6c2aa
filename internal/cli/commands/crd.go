package commands

import (
	"context"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

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

// crdContent returns the CustomResourceDefinition of a kind on the cluster; nil if there
// is none or, with a warning, if the user is not allowed to read it.
func (a *app) crdContent(ctx context.Context, ref api.PolicyKind) (map[string]any, error) {
	stored, err := a.storedObjects()
	if err != nil {
		return nil, err
	}
	_, resource := a.resource(ref)
	if resource == "" {
		resource = plural(ref)
	}
	name := resource + "." + ref.Group
	content, err := stored.get(ctx, api.Ref{Group: manifest.KindCRD.Group, Kind: manifest.KindCRD.Kind, Name: name})
	if apierrors.IsForbidden(err) {
		a.warnf("skipping the schema of %s: %v", name, err)
	}
	if apierrors.IsForbidden(err) || isAbsent(err) {
		return nil, nil
	}
	return content, err
}
