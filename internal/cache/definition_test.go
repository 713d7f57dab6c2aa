package cache

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/test/messages"
)

// crd describes the CustomResourceDefinition of a kind.
type crd struct {
	group, kind, plural string
	label               string
	versions            []string // the first is the stored one
	unserved            []string
	specFields          []string
	pending             bool
	clusterScoped       bool
}

func (c crd) obj() *apiextensionsv1.CustomResourceDefinition {
	out := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: c.plural + "." + c.group}}
	if c.label != "" {
		out.Labels = map[string]string{policykind.LabelPolicy: c.label}
	}
	out.Spec.Group, out.Spec.Scope = c.group, apiextensionsv1.NamespaceScoped
	if c.clusterScoped {
		out.Spec.Scope = apiextensionsv1.ClusterScoped
	}
	out.Spec.Names.Kind, out.Spec.Names.Plural = c.kind, c.plural
	spec := apiextensionsv1.JSONSchemaProps{Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
	for _, f := range c.specFields {
		spec.Properties[f] = apiextensionsv1.JSONSchemaProps{}
	}
	for i, name := range append(append([]string{}, c.versions...), c.unserved...) {
		out.Spec.Versions = append(out.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: i < len(c.versions), Storage: i == 0,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": spec},
			}},
		})
	}
	if !c.pending {
		out.Status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
			{Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue},
			{Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue},
		}
	}
	return out
}

var (
	authCRD  = crd{group: "kuadrant.io", kind: "AuthPolicy", plural: "authpolicies", versions: []string{"v1"}}
	colorCRD = crd{group: "policies.example.com", kind: "ColorPolicy", plural: "colorpolicies", label: "inherited", versions: []string{"v1"}}
	httpCRD  = crd{group: api.GatewayGroup, kind: "HTTPRoute", plural: "httproutes", versions: []string{"v1"}}
	tlsCRD   = crd{group: api.GatewayGroup, kind: "TLSRoute", plural: "tlsroutes", versions: []string{"v1"}}

	profileCRD = crd{group: api.Group, kind: api.KindPolicyProfile, plural: "policyprofiles", versions: []string{"v1alpha1"}, clusterScoped: true}
)

func TestParseDefinition(t *testing.T) {
	with := func(c crd, edit func(*crd)) crd { edit(&c); return c }
	type want struct {
		version string
		gateway string
		policy  policykind.Source
		class   api.ProfileClass
		cluster bool
		err     string
	}
	for sentence, c := range map[string]struct {
		crd  crd
		want want
	}{
		"a kind with a built-in profile is a policy kind without a label": {
			authCRD, want{version: "v1", policy: policykind.Builtin, class: api.Inherited}},
		"the built-in profile takes precedence over the label": {
			with(authCRD, func(c *crd) { c.label = "direct" }), want{version: "v1", policy: policykind.Builtin, class: api.Inherited}},
		"the label makes any kind a policy kind": {
			colorCRD, want{version: "v1", policy: policykind.Label, class: api.Inherited}},
		"a label of true is guessed from the schema": {
			with(colorCRD, func(c *crd) { c.label, c.specFields = "true", []string{"overrides"} }),
			want{version: "v1", policy: policykind.Label, class: api.Inherited}},
		"a cluster-scoped kind is read too": {
			with(colorCRD, func(c *crd) { c.clusterScoped = true }),
			want{version: "v1", policy: policykind.Label, class: api.Inherited, cluster: true}},
		"a kind without a label and a profile is ignored": {
			with(colorCRD, func(c *crd) { c.label = "" }), want{version: "v1"}},
		"a label of false is ignored": {
			with(colorCRD, func(c *crd) { c.label = "false" }), want{version: "v1"}},
		"a kind is not read before it is established": {
			with(authCRD, func(c *crd) { c.pending = true }), want{}},
		"the stored version is read, not the newest": {
			with(authCRD, func(c *crd) { c.versions = []string{"v1beta1", "v1"} }),
			want{version: "v1beta1", policy: policykind.Builtin, class: api.Inherited}},
		"a kind that serves no version is not read": {
			with(authCRD, func(c *crd) { c.versions, c.unserved = nil, []string{"v1"} }), want{}},
		"a kind of Gateway API is builtin": {
			httpCRD, want{version: "v1", gateway: "httproutes"}},
		"a kind of Gateway API is read in v1, whatever is stored": {
			with(httpCRD, func(c *crd) { c.versions = []string{"v1beta1", "v1"} }), want{version: "v1", gateway: "httproutes"}},
		"a kind of Gateway API without v1 is a problem": {
			with(httpCRD, func(c *crd) { c.versions, c.unserved = []string{"v1beta1"}, []string{"v1"} }), want{gateway: "httproutes", err: "v1"}},
		"a kind that is younger than v1 is read in an older version": {
			with(tlsCRD, func(c *crd) { c.versions = []string{"v1alpha2", "v1alpha3"} }), want{version: "v1alpha3", gateway: "tlsroutes"}},
		"but in v1 if that is served": {
			with(tlsCRD, func(c *crd) { c.versions = []string{"v1alpha3", "v1"} }), want{version: "v1", gateway: "tlsroutes"}},
		"a version that is not known is not read": {
			with(tlsCRD, func(c *crd) { c.versions = []string{"v2"} }),
			want{gateway: "tlsroutes", err: "v1 or v1alpha3 or v1alpha2"}},
		"the definition of profiles is no policy kind": {
			with(profileCRD, func(c *crd) { c.label = "direct" }), want{version: "v1alpha1", cluster: true}},
		"profiles in a version that is not known are a problem": {
			with(profileCRD, func(c *crd) { c.versions = []string{"v1"} }),
			want{cluster: true, err: "v1alpha1"}},
		"a kind of Gateway API is not read before it is established": {
			with(httpCRD, func(c *crd) { c.pending = true }), want{}},
		"a kind of another group is not builtin": {
			with(httpCRD, func(c *crd) { c.group = "example.com" }), want{version: "v1"}},
		"a label on a kind without a name is a problem": {
			with(colorCRD, func(c *crd) { c.kind = "" }), want{version: "v1", err: "spec.kind: Required value"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			o, err := decodeDefinition(c.crd.obj())
			require.NoError(t, err)
			d := o.(*snapshot.Definition)
			got := want{version: d.Resource.Version, cluster: !d.Namespaced}
			if b := fixedKindOf(d); b != nil {
				got.gateway = b.resource
			}
			policy, err := snapshot.NewKinds().With(snapshot.Put(d)).Policy(d)
			if policy != nil {
				got.policy, got.class = policy.Source, policy.Class
			}
			if err != nil {
				messages.Golden(t, err.Error())
				assert.NotEmpty(t, c.want.err, err)
				require.ErrorContains(t, err, c.want.err)
				got.err = c.want.err
			}
			assert.Equal(t, c.want, got)
			if d.Served() {
				assert.Equal(t, schema.GroupVersionResource{Group: c.crd.group, Version: c.want.version, Resource: c.crd.plural}, d.Resource)
			}
		})
	}
}

func TestServedVersion(t *testing.T) {
	obj := crd{group: "kuadrant.io", kind: "AuthPolicy", plural: "authpolicies", versions: []string{"v1", "v1alpha1", "v2beta1", "v1beta1"}}.obj()
	obj.Spec.Versions[0].Served = false
	assert.Equal(t, "v2beta1", snapshot.ParseDefinition(obj).Resource.Version)
}

func TestDecodeDefinitionRejectsOtherTypes(t *testing.T) {
	_, err := decodeDefinition(&corev1.Namespace{})
	assert.EqualError(t, err, "got *v1.Namespace, want *v1.CustomResourceDefinition")
}
