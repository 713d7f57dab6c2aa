package snapshot

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
)

// Fixed is a kind whose objects are read in fixed versions: one of Gateway API, PolicyProfile
// or a constraint kind. It is never a policy kind.
type Fixed struct {
	// Resource is its plural name.
	Resource string
	// Versions are preferred in this order. All have the same shape.
	Versions []string
}

var fixedKinds = map[api.PolicyKind]Fixed{
	gateway.KindOf(gateway.KindGatewayClass):   {"gatewayclasses", []string{"v1"}},
	gateway.KindOf(gateway.KindGateway):        {"gateways", []string{"v1"}},
	gateway.KindOf(gateway.KindListenerSet):    {"listenersets", []string{"v1"}},
	gateway.KindOf(gateway.KindXListenerSet):   {"xlistenersets", []string{"v1alpha1"}},
	gateway.KindOf(gateway.KindReferenceGrant): {"referencegrants", []string{"v1", "v1beta1"}},
	gateway.KindOf(gateway.KindHTTPRoute):      {"httproutes", []string{"v1"}},
	gateway.KindOf(gateway.KindGRPCRoute):      {"grpcroutes", []string{"v1"}},
	gateway.KindOf(gateway.KindTLSRoute):       {"tlsroutes", []string{"v1", "v1alpha3", "v1alpha2"}},
	gateway.KindOf(gateway.KindTCPRoute):       {"tcproutes", []string{"v1", "v1alpha2"}},
	gateway.KindOf(gateway.KindUDPRoute):       {"udproutes", []string{"v1", "v1alpha2"}},
	policykind.KindProfile:                     {"policyprofiles", []string{"v1alpha1"}},
	constraint.Kind:                            {"policyconstraints", []string{"v1alpha1"}},
	constraint.ClusterKind:                     {"clusterpolicyconstraints", []string{"v1alpha1"}},
}

// FixedKind returns a kind that is read in fixed versions. It is zero for any other.
func FixedKind(kind api.PolicyKind) Fixed { return fixedKinds[kind] }

// DefinitionName returns the name of the definition of a kind that is read in fixed versions.
func DefinitionName(kind api.PolicyKind) string { return fixedKinds[kind].Resource + "." + kind.Group }

// ErrNoReadableVersion means that a kind is served, but in no version that can be read.
var ErrNoReadableVersion = errors.New("no supported version is served")

// Definition is what of a CustomResourceDefinition decides how objects are read. It does not
// include the profile of the kind: profiles change independently. It is immutable.
type Definition struct {
	// Name of the CustomResourceDefinition.
	Name string
	Kind api.PolicyKind
	// Resource is what is read, without a version if there is nothing to read.
	Resource   schema.GroupVersionResource
	Namespaced bool
	// Fixed is set for kinds that are read in fixed versions.
	Fixed bool
	// Status is set if the version that is read has a status subresource.
	Status bool
	// ScalePaths are the fields that scale subresources write, by served version.
	ScalePaths map[string]string
	// Schema of the version that is read, nil if it has none.
	Schema *policykind.Schema
	// Err is why the kind cannot be read though it should be. An error of its label counts
	// only if there is no profile.
	Err error
	// created is in seconds since 1970, or merge.Newest.
	created int64
	// label is the policy kind as its label alone describes it, nil without a label.
	label *policykind.Kind
}

// Ref returns the reference of the CustomResourceDefinition.
func (d *Definition) Ref() api.Ref {
	return api.Ref{Group: policykind.KindDefinition.Group, Kind: policykind.KindDefinition.Kind, Name: d.Name}
}

// Served reports whether there is a resource to read.
func (d *Definition) Served() bool { return d.Resource.Version != "" }

// NewDefinition returns the definition of a resource that the API server serves in its version.
func NewDefinition(r schema.GroupVersionResource, kind string, namespaced bool) *Definition {
	d := &Definition{Name: r.GroupResource().String(), Kind: api.PolicyKind{Group: r.Group, Kind: kind}, Namespaced: namespaced}
	if !d.readFixed([]string{r.Version}) {
		d.Resource = r
	}
	return d
}

// ParseDefinition converts a CustomResourceDefinition. One that is not established is not served.
func ParseDefinition(crd *apiextensionsv1.CustomResourceDefinition) *Definition {
	return parseDefinition(&policykind.Definition{CustomResourceDefinition: *crd}, established(crd))
}

// parseDefinition converts a CustomResourceDefinition, which is served or not.
func parseDefinition(crd *policykind.Definition, served bool) *Definition {
	d := &Definition{
		Name: crd.Name, Kind: crd.Defines(), Namespaced: crd.Spec.Scope != apiextensionsv1.ClusterScoped,
		created: createdAt(crd.CreationTimestamp.Unix(), crd.CreationTimestamp.IsZero(), crd.Created),
	}
	if !served || d.readFixed(servedVersions(&crd.CustomResourceDefinition)) {
		return d
	}
	if d.Err = d.checkReserved(); d.Err != nil {
		return d
	}
	d.Resource = schema.GroupVersionResource{Group: d.Kind.Group, Version: readVersion(&crd.CustomResourceDefinition), Resource: crd.Spec.Names.Plural}
	d.ScalePaths = policykind.ScalePaths(&crd.CustomResourceDefinition)
	for _, v := range crd.Spec.Versions {
		if v.Name != d.Resource.Version {
			continue
		}
		d.Status = v.Subresources != nil && v.Subresources.Status != nil
		if v.Schema != nil {
			d.Schema = policykind.PackSchema(v.Schema.OpenAPIV3Schema)
		}
	}
	if spec, ok := policykind.FromLabel(&crd.CustomResourceDefinition); ok {
		if d.label, d.Err = policykind.Compile(spec, policykind.Label); d.Err != nil {
			d.Err = fmt.Errorf("derive a profile from label %s: %w", policykind.LabelPolicy, d.Err)
		}
	}
	return d
}

// readFixed completes the definition of a kind that is read in fixed versions, and reports
// whether it is one.
func (d *Definition) readFixed(served []string) bool {
	of := fixedKinds[d.Kind]
	if d.Fixed = of.Resource != "" && d.Name == DefinitionName(d.Kind); !d.Fixed {
		return false
	}
	i := slices.IndexFunc(of.Versions, func(v string) bool { return slices.Contains(served, v) })
	if i < 0 {
		d.Err = fmt.Errorf("%w: install a release that has %s", ErrNoReadableVersion, strings.Join(of.Versions, " or "))
		return true
	}
	d.Resource = schema.GroupVersionResource{Group: d.Kind.Group, Version: of.Versions[i], Resource: of.Resource}
	return true
}

// checkReserved returns an error if the kind is one that is read by a definition of another
// name, in fixed versions.
func (d *Definition) checkReserved() error {
	if by := DefinitionName(d.Kind); fixedKinds[d.Kind].Resource != "" && by != d.Name {
		return &policykind.DefinedError{Kind: d.Kind, By: by}
	}
	return nil
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
}

func servedVersions(crd *apiextensionsv1.CustomResourceDefinition) []string {
	var out []string
	for _, v := range crd.Spec.Versions {
		if v.Served {
			out = append(out, v.Name)
		}
	}
	return out
}

// readVersion returns the storage version if it is served, since reading it needs no
// conversion; else the most stable served version.
func readVersion(crd *apiextensionsv1.CustomResourceDefinition) string {
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

// createdAt returns the creation time of an object, which counts as the given one, or as
// newest, if it has none.
func createdAt(created int64, none bool, given int64) int64 {
	if none {
		return cmp.Or(given, merge.Newest)
	}
	return created
}

// activeDefinitions returns the definition that is used for each kind: policies, their resource
// and the permissions for it are read by one. The API server accepts the names of only one
// definition of a kind, but it also serves a second one if the status of that says so, which
// every client with write access to the status can set.
func activeDefinitions(defined iter.Seq[*Definition]) map[api.PolicyKind]*Definition {
	out := make(map[api.PolicyKind]*Definition)
	for d := range defined {
		if other := out[d.Kind]; other == nil || d.precedes(other) {
			out[d.Kind] = d
		}
	}
	return out
}

// precedes reports whether d is used instead of another definition of its kind: a served one
// first, then the older one. Clients that can write the status cannot choose the creation time.
func (d *Definition) precedes(other *Definition) bool {
	if d.Served() != other.Served() {
		return d.Served()
	}
	return cmp.Or(cmp.Compare(d.created, other.created), strings.Compare(d.Name, other.Name)) < 0
}
