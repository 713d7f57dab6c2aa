package cache

import (
	"context"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	api "overrule.dev/overrule/api/v1alpha1"
)

// Schema reads the schema of a kind from the API server, in the version that is read.
// It returns nil if the kind is not installed or has no schema.
func (w *Watcher) Schema(ctx context.Context, kind api.PolicyKind) (*apiextensionsv1.JSONSchemaProps, error) {
	name := w.registry.definitionName(kind)
	if name == "" {
		return nil, nil
	}
	var crd apiextensionsv1.CustomResourceDefinition
	err := w.clients.definitions.Get().Resource(sourceDefinitions).Name(name).Do(ctx).Into(&crd)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the schema of %s from the API server: %w", kind, err)
	}
	return schemaOf(&crd, servedVersion(&crd)), nil
}

func schemaOf(crd *apiextensionsv1.CustomResourceDefinition, version string) *apiextensionsv1.JSONSchemaProps {
	for _, v := range crd.Spec.Versions {
		if v.Name == version && v.Schema != nil {
			return v.Schema.OpenAPIV3Schema
		}
	}
	return nil
}

// plural returns the plural name of a kind, empty if it is not defined.
func (r *registry) plural(kind api.PolicyKind) string {
	d := r.definitionFor(kind)
	if d == nil {
		return ""
	}
	return strings.TrimSuffix(d.name, "."+kind.Group)
}

// definitionName returns the name of the served definition of a kind, empty if there is
// none.
func (r *registry) definitionName(kind api.PolicyKind) string {
	d := r.definitionFor(kind)
	if d == nil || !d.served() {
		return ""
	}
	return d.name
}

// definitionFor returns the active definition of a kind, nil if there is none.
func (r *registry) definitionFor(kind api.PolicyKind) *definition {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.active[kind]
}
