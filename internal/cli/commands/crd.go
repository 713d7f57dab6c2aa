package commands

import (
	"context"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/manifest"
)

// definition returns the CustomResourceDefinition of a kind on the cluster; nil if there
// is none or, with a warning, if the user is not allowed to read it.
func (a *app) definition(ctx context.Context, ref api.PolicyKind) (*apiextensionsv1.CustomResourceDefinition, error) {
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
	switch {
	case apierrors.IsForbidden(err):
		a.warnf("skipping the schema of %s: %v", name, err)
		return nil, nil
	case isAbsent(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	var out apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &out); err != nil {
		return nil, fmt.Errorf("decode the CustomResourceDefinition of %s: %w", ref, err)
	}
	return &out, nil
}
