// Package deploy_test tests the manifests under deploy and the Dockerfile.
package deploy_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const (
	root      = "../.."
	namespace = "overrule-system"
)

// installations are the folders that users apply.
var installations = []string{"base", "overlays/warn", "overlays/static-webhooks", "overlays/cert-manager", "overlays/certificate-files", "overlays/refresh"}

// render builds a kustomization of deploy as kubectl does.
func render(t *testing.T, dir string) []*unstructured.Unstructured {
	t.Helper()
	return renderPath(t, filepath.Join(root, "deploy", dir))
}

func renderPath(t *testing.T, path string) []*unstructured.Unstructured {
	t.Helper()
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), path)
	require.NoError(t, err)
	var objects []*unstructured.Unstructured
	for _, resource := range built.Resources() {
		content, err := resource.Map()
		require.NoError(t, err)
		objects = append(objects, &unstructured.Unstructured{Object: content})
	}
	return objects
}

// find returns the one object of that kind and name, decoded strictly: a misspelt
// field fails.
func find[T any](t *testing.T, objects []*unstructured.Unstructured, kind, name string) *T {
	t.Helper()
	for _, object := range objects {
		if object.GetKind() == kind && object.GetName() == name {
			return decode[T](t, object)
		}
	}
	require.Failf(t, "not rendered", "no %s %s among the manifests", kind, name)
	return nil
}

func decode[T any](t *testing.T, object *unstructured.Unstructured) *T {
	t.Helper()
	into := new(T)
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, into, true)
	require.NoErrorf(t, err, "%s %s", object.GetKind(), object.GetName())
	return into
}

func ofKind[T any](t *testing.T, objects []*unstructured.Unstructured, kind string) []*T {
	t.Helper()
	var found []*T
	for _, object := range objects {
		if object.GetKind() == kind {
			found = append(found, decode[T](t, object))
		}
	}
	return found
}

func deployment(t *testing.T, dir string) *appsv1.Deployment {
	t.Helper()
	return find[appsv1.Deployment](t, render(t, dir), "Deployment", "overrule")
}
