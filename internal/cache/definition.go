package cache

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
)

// errNoReadableVersion means that a kind is served, but in no version that can be read.
var errNoReadableVersion = errors.New("no supported version is served")

// profilesDefinition is the name of the CustomResourceDefinition of PolicyProfile, and
// profilesVersion the version in which profiles are read.
const (
	profilesDefinition = sourceProfiles + "." + api.Group
	profilesVersion    = "v1alpha1"
)

// definition is the content of a CustomResourceDefinition that matters here. It does
// not include the profile of the kind: profiles change independently.
type definition struct {
	// name of the CustomResourceDefinition.
	name string
	// created is the creation time in seconds since 1970, or merge.Newest.
	created   int64
	groupKind api.PolicyKind
	resource  schema.GroupVersionResource
	// namespaced is false for cluster-scoped kinds.
	namespaced bool
	// gateway is set for the kinds of Gateway API.
	gateway *builtin
	// constraints is set for the constraint kinds.
	constraints *constraintKind
	// scalePaths are the fields that scale subresources write, by served version.
	scalePaths map[string]string
	// hasStatus is true if the version that is read has a status subresource.
	hasStatus bool
	// labelKind is the policy kind as its label alone describes it, nil without a
	// label.
	labelKind *policykind.Kind
	// schema of the version that is read, nil if it has none.
	schema *policykind.Schema
	// err is why the kind cannot be read though it should be. An error of labelKind
	// counts only if there is no profile.
	err error
}

// served reports whether there is a resource to read.
func (d *definition) served() bool { return d.resource.Version != "" }

// isProfiles reports whether this is the definition of PolicyProfile.
func (d *definition) isProfiles() bool { return d.name == profilesDefinition }

// policyKind returns the policy kind that is defined, as its profile describes it, else
// its label; nil if it is not a policy kind.
func (d *definition) policyKind(profiles *policykind.Profiles) (*policykind.Kind, error) {
	if !d.served() || d.gateway != nil || d.constraints != nil || d.isProfiles() {
		return nil, d.err
	}
	if k := profiles.Of(d.groupKind); k != nil {
		return k.WithSchema(d.schema), nil
	}
	if d.labelKind == nil {
		return nil, d.err
	}
	return d.labelKind.WithSchema(d.schema), d.err
}

// parseDefinition converts a CustomResourceDefinition.
func parseDefinition(crd *apiextensionsv1.CustomResourceDefinition) *definition {
	d := &definition{
		name: crd.Name, groupKind: api.PolicyKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind},
		created: createdAt(crd), namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
	}
	if !established(crd) {
		return d
	}
	if d.parseBuiltin(resource(crd, ""), func(version string) bool { return serves(crd, version) }) {
		return d
	}
	if err := checkReserved(d); err != nil {
		d.err = err
		return d
	}
	d.resource = resource(crd, servedVersion(crd))
	d.labelKind, d.err = new(policykind.Profiles).Defined(crd) // without a profile, the label alone counts
	d.schema = policykind.PackSchema(schemaOf(crd, d.resource.Version))
	d.hasStatus = hasStatus(crd, d.resource.Version)
	d.scalePaths = policykind.ScalePaths(crd)
	return d
}

// parseBuiltin completes the definition of a kind that is read in fixed versions: a
// kind of Gateway API, PolicyProfile or a constraint. It reports whether it is one.
func (d *definition) parseBuiltin(r schema.GroupVersionResource, serves func(version string) bool) bool {
	versions := []string{profilesVersion}
	d.gateway = findGatewayKind(func(b *builtin) bool { return b.definition() == d.name })
	d.constraints = constraintKindOf(d.name)
	switch {
	case d.gateway != nil:
		versions = d.gateway.versions
	case !d.isProfiles() && d.constraints == nil:
		return false
	}
	i := slices.IndexFunc(versions, serves)
	if i < 0 {
		d.err = fmt.Errorf("%w: install a release that has %s", errNoReadableVersion, strings.Join(versions, " or "))
		return true
	}
	r.Version = versions[i]
	d.resource = r
	return true
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
}

func serves(crd *apiextensionsv1.CustomResourceDefinition, version string) bool {
	return slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Served && v.Name == version
	})
}

func hasStatus(crd *apiextensionsv1.CustomResourceDefinition, version string) bool {
	return slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Name == version && v.Subresources != nil && v.Subresources.Status != nil
	})
}

// servedVersion returns the storage version if it is served, since reading it needs no
// conversion; else the most stable served version.
func servedVersion(crd *apiextensionsv1.CustomResourceDefinition) string {
	best := ""
	for _, v := range crd.Spec.Versions {
		switch {
		case !v.Served:
		case v.Storage:
			return v.Name
		case best == "" || version.CompareKubeAwareVersionStrings(v.Name, best) > 0:
			best = v.Name
		}
	}
	return best
}

func resource(crd *apiextensionsv1.CustomResourceDefinition, served string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: crd.Spec.Group, Version: served, Resource: crd.Spec.Names.Plural}
}

// decodeDefinition is parseDefinition for objects from the API server.
func decodeDefinition(obj runtime.Object) (*definition, error) {
	crd, ok := obj.(*apiextensionsv1.CustomResourceDefinition)
	if !ok {
		return nil, fmt.Errorf("got %T, want %T", obj, crd)
	}
	return parseDefinition(crd), nil
}
