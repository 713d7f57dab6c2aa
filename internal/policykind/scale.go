package policykind

import (
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// ScalePaths returns the replicas path of the scale subresource, for each served
// version of a definition that has one.
func ScalePaths(crd *apiextensionsv1.CustomResourceDefinition) map[string]string {
	out := make(map[string]string)
	for _, v := range crd.Spec.Versions {
		if v.Served && v.Subresources != nil && v.Subresources.Scale != nil {
			out[v.Name] = v.Subresources.Scale.SpecReplicasPath
		}
	}
	return out
}

// Scales returns the versions, sorted, in which a scale writes a field that its
// profile does not ignore.
func (k *Kind) Scales(paths map[string]string) []string {
	var out []string
	for _, version := range slices.Sorted(maps.Keys(paths)) {
		if !k.ignores(paths[version]) {
			out = append(out, version)
		}
	}
	return out
}

// ignores reports whether the profile ignores a field of an object, such as
// .spec.a.b.
func (k *Kind) ignores(path string) bool {
	at := strings.Split(strings.TrimPrefix(path, "."), ".")
	content := slices.Concat(k.root, k.content)
	return content.isPrefixOf(at) && slices.ContainsFunc(k.ignored, func(a fieldPath) bool { return a.isPrefixOf(at[len(content):]) })
}
