package watch

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
)

// errVersion tells that a kind of Gateway API is not served in the version
// that is read.
var errVersion = errors.New("version " + gatewayVersion + " is not served; install a release of Gateway API that has it")

// definition is what a CustomResourceDefinition tells of a kind to be read.
type definition struct {
	// name of the CustomResourceDefinition.
	name       string
	resource   schema.GroupVersionResource
	namespaced bool
	// One of the two is set if the kind is to be read.
	gateway *builtin
	policy  *policykind.Kind
	// err tells why the kind cannot be read though it should.
	err error
}

// wanted reports whether there is something to read.
func (d *definition) wanted() bool { return d.gateway != nil || d.policy != nil }

// same reports whether d and other are read in the same way.
func (d *definition) same(other *definition) bool {
	if d.resource != other.resource || d.namespaced != other.namespaced || d.gateway != other.gateway {
		return false
	}
	if d.policy == nil || other.policy == nil {
		return d.policy == other.policy
	}
	return d.policy.Source == other.policy.Source && reflect.DeepEqual(d.policy.Profile, other.policy.Profile)
}

// profiles knows the policy kinds that Overrule has a profile of.
type profiles map[api.PolicyKind]*policykind.Kind

func builtinProfiles() (profiles, error) {
	kinds, err := policykind.BuiltinKinds()
	if err != nil {
		return nil, err
	}
	out := make(profiles, len(kinds))
	for _, k := range kinds {
		out[k.Ref()] = k
	}
	return out, nil
}

// read reads a CustomResourceDefinition.
func (p profiles) read(crd *apiextensionsv1.CustomResourceDefinition) *definition {
	d := &definition{name: crd.Name, namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped}
	if !established(crd) {
		return d
	}
	gateway := slices.IndexFunc(gatewayKinds, func(b builtin) bool { return b.definition() == crd.Name })
	if gateway >= 0 {
		d.readGateway(crd, &gatewayKinds[gateway])
		return d
	}
	kind, err := p.kind(crd)
	served := servedVersion(crd)
	switch {
	case err != nil:
		d.err = err
	case kind != nil && served != "":
		d.policy, d.resource = kind, resource(crd, served)
	}
	return d
}

func (d *definition) readGateway(crd *apiextensionsv1.CustomResourceDefinition, b *builtin) {
	if !slices.ContainsFunc(crd.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return v.Served && v.Name == gatewayVersion
	}) {
		d.err = errVersion
		return
	}
	d.gateway, d.resource = b, resource(crd, gatewayVersion)
}

// kind returns the policy kind that a CustomResourceDefinition defines: by its
// built-in profile, else by its label; nil if it has neither.
func (p profiles) kind(crd *apiextensionsv1.CustomResourceDefinition) (*policykind.Kind, error) {
	if k := p[api.PolicyKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}]; k != nil {
		return k, nil
	}
	profile, ok := policykind.FromLabel(crd)
	if !ok {
		return nil, nil
	}
	k, err := policykind.Compile(profile, policykind.Label)
	if err != nil {
		return nil, fmt.Errorf("guess a profile by label %s: %w", policykind.LabelPolicy, err)
	}
	return k, nil
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
}

// servedVersion returns the stored version if it is served, since reading that
// costs the API server no conversion; else the most stable that is served.
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

// decode is read, for objects from the API server.
func (p profiles) decode(obj runtime.Object) (*definition, error) {
	crd, ok := obj.(*apiextensionsv1.CustomResourceDefinition)
	if !ok {
		return nil, fmt.Errorf("got a %T in place of a %T", obj, crd)
	}
	return p.read(crd), nil
}
