package cache

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
)

const storedColor = `{"apiVersion": "policies.example.com/v1", "kind": "ColorPolicy", "metadata": {"namespace": "app", "name": "p", "uid": "u", "resourceVersion": "7"},
	"spec": {"targetRef": {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "r"}, "overrides": {"wall": "red"}}}`

// newVersionsFixture returns a Watcher of one ColorPolicy, and the definition of its
// kind.
func newVersionsFixture(t *testing.T) (*testRegistry, *Watcher, *policykind.Definition) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/apis/policies.example.com/v1/colorpolicies":
			_, _ = fmt.Fprintf(w, `{"apiVersion": "policies.example.com/v1", "kind": "ColorPolicyList", "metadata": {"resourceVersion": "9"}, "items": [%s]}`, storedColor)
		case "/apis/policies.example.com/v1/namespaces/app/colorpolicies/p":
			_, _ = fmt.Fprint(w, storedColor)
		case "/apis/policies.example.com/v2/colorpolicies": // converted by a webhook that fails
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = fmt.Fprint(w, `{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "InternalError", "code": 500}`)
		default:
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprint(w, `{"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404}`)
		}
	}))
	t.Cleanup(server.Close)
	c, err := newClients(&rest.Config{Host: server.URL}, 0)
	require.NoError(t, err)
	r := newTestRegistry(t)
	d := inVersions(open, inService("v2", open))
	r.replace([]*definition{parseDefinition(&d.CustomResourceDefinition)})
	v, _ := r.store.View()
	require.Empty(t, v.Kinds())
	r.list(d.Name, policyOf(t, storedColor))
	return r, &Watcher{clients: c, registry: r.registry}, d
}

func policyOf(t *testing.T, text string) runtime.Object {
	t.Helper()
	u := &unstructured.Unstructured{}
	require.NoError(t, u.UnmarshalJSON([]byte(text)))
	return u
}

func propsOf(text string) (out apiextensionsv1.JSONSchemaProps) {
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		panic(err)
	}
	return out
}

const (
	open   = `{type: object, x-kubernetes-preserve-unknown-fields: true}`
	narrow = `{type: object, properties: {targetRef: {type: object, x-kubernetes-preserve-unknown-fields: true}}}`
	set    = `{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {targetRef: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {sectionName: {type: string, default: x}}}}}`
)

func inService(name, spec string) apiextensionsv1.CustomResourceDefinitionVersion {
	props := apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": propsOf(spec)}}
	return apiextensionsv1.CustomResourceDefinitionVersion{Name: name, Served: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &props}}
}

// inVersions is the definition of ColorPolicies, whose storage version is v1.
func inVersions(v1 string, others ...apiextensionsv1.CustomResourceDefinitionVersion) *policykind.Definition {
	d := &policykind.Definition{CustomResourceDefinition: *colorCRD.obj()}
	first := inService("v1", v1)
	first.Storage = true
	d.Spec.Versions = append([]apiextensionsv1.CustomResourceDefinitionVersion{first}, others...)
	return d
}

func TestRewritten(t *testing.T) {
	r, w, was := newVersionsFixture(t)
	v, _ := r.store.View()
	unserved, converted := inService("v3", narrow), inVersions(open, inService("v3", narrow))
	unserved.Served = false
	converting := inVersions(open, inService("v2", open))
	converting.Spec.Versions[0].Storage, converting.Spec.Versions[1].Storage = false, true
	converting.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}
	converted.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter}
	schemaless := inService("v3", open)
	schemaless.Schema = nil
	for name, c := range map[string]struct {
		was, is *policykind.Definition
		want    map[string]string // the result by version
	}{
		"nothing changes":                           {was, was, nil},
		"a version of the same schema":              {was, inVersions(open, inService("v2", open), inService("v3", open)), nil},
		"a version without overrides":               {was, inVersions(open, inService("v2", open), inService("v3", narrow)), map[string]string{"v3": "HTTPRoute "}},
		"one that is not served":                    {was, inVersions(open, inService("v2", open), unserved), nil},
		"one without a schema":                      {was, inVersions(open, inService("v2", open), schemaless), nil},
		"one that is narrowed":                      {was, inVersions(open, inService("v2", narrow)), map[string]string{"v2": "HTTPRoute "}},
		"one with a default":                        {was, inVersions(open, inService("v2", set)), map[string]string{"v2": "HTTPRoute x overrides"}},
		"two of them":                               {was, inVersions(open, inService("v2", set), inService("v3", narrow)), map[string]string{"v2": "HTTPRoute x overrides", "v3": "HTTPRoute "}},
		"one that was narrow before":                {inVersions(open, inService("v2", narrow)), inVersions(open, inService("v2", narrow), inService("v3", open)), nil},
		"one that was converted by a webhook":       {converted, inVersions(open, inService("v3", narrow)), map[string]string{"v3": "HTTPRoute "}},
		"one that a webhook that is down converted": {converting, inVersions(open, inService("v2", open), inService("v3", narrow)), map[string]string{"v3": "HTTPRoute "}},
		"one that is converted by a webhook":        {was, converted, nil},
		"of a kind that was not served":             {&policykind.Definition{}, inVersions(open, inService("v3", narrow)), nil},
		"of a kind that is not read":                {was, &policykind.Definition{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := w.ViewsInOtherVersions(t.Context(), v, c.was, c.is)
			require.NoError(t, err)
			var left map[string]string
			for _, view := range got {
				if left == nil {
					left = map[string]string{}
				}
				p := view.View.Get(api.Ref{Group: colorRef.Group, Kind: colorRef.Kind, Namespace: "app", Name: "p"}).(*policykind.Policy)
				left[view.Version] = p.Targets[0].Ref.Kind + " " + p.Targets[0].Section
				for _, b := range p.Blocks {
					if b.Block == merge.Overrides {
						left[view.Version] += " overrides"
					}
				}
			}
			assert.Equal(t, c.want, left)
		})
	}

	w.clients = unreachable(t).clients
	_, err := w.ViewsInOtherVersions(t.Context(), v, was, inVersions(open, inService("v2", narrow)))
	require.ErrorContains(t, err, "list colorpolicies.policies.example.com ")
}

func TestRewrittenRejectsOtherTypes(t *testing.T) {
	r, _, _ := newVersionsFixture(t)
	v, _ := r.store.View()
	_, err := rewritten(v.Kind(colorRef), &metav1.Status{}, nil, nil)
	require.ErrorContains(t, err, ", want *")
}

func TestRewrittenReadsStoredPolicy(t *testing.T) {
	r, w, _ := newVersionsFixture(t)
	v, _ := r.store.View()
	ref := api.Ref{Group: colorRef.Group, Kind: colorRef.Kind, Namespace: "app", Name: "p"}
	o, err := w.Stored(t.Context(), v.Kind(colorRef), ref)
	require.NoError(t, err)
	assert.Equal(t, policykind.State{UID: "u", Version: "7"}, o.(*policykind.Policy).State)

	ref.Name = "other"
	o, err = w.Stored(t.Context(), v.Kind(colorRef), ref)
	require.NoError(t, err)
	assert.Nil(t, o)
}
