package policykind_test

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
)

type definition = apiextensionsv1.CustomResourceDefinition

// tintDefinition is a definition of two versions that a webhook converts.
func tintDefinition(edit func(*definition)) *policykind.Definition {
	d := &policykind.Definition{}
	d.Name, d.Spec.Group, d.Spec.Scope = "tints.example.com", "example.com", apiextensionsv1.NamespaceScoped
	d.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Kind: "Tint", Plural: "tints"}
	for _, name := range []string{"v1", "v1beta1"} {
		d.Spec.Versions = append(d.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: name == "v1", Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Type: "object", Description: "what is wanted"}},
			}},
		})
	}
	url := "https://example.com"
	d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook:  &apiextensionsv1.WebhookConversion{ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: []byte("old")}},
	}
	if edit != nil {
		edit(&d.CustomResourceDefinition)
	}
	return d
}

func TestDefinitionReadsLike(t *testing.T) {
	spec := func(d *definition, version int, edit func(*apiextensionsv1.JSONSchemaProps)) {
		properties := d.Spec.Versions[version].Schema.OpenAPIV3Schema.Properties
		p := properties["spec"]
		edit(&p)
		properties["spec"] = p
	}
	for name, c := range map[string]struct {
		edit func(*definition)
		want bool
	}{
		"nothing":       {nil, true},
		"an annotation": {func(d *definition) { d.Annotations = map[string]string{"a": "b"} }, true},
		"the status":    {func(d *definition) { d.Status.StoredVersions = []string{"v1"} }, true},
		"a caBundle":    {func(d *definition) { d.Spec.Conversion.Webhook.ClientConfig.CABundle = []byte("new") }, true},
		"a description": {func(d *definition) { spec(d, 0, func(p *apiextensionsv1.JSONSchemaProps) { p.Description = "else" }) }, true},
		"a printer column": {func(d *definition) {
			d.Spec.Versions[0].AdditionalPrinterColumns = []apiextensionsv1.CustomResourceColumnDefinition{{Name: "a"}}
		}, true},
		"a short name":          {func(d *definition) { d.Spec.Names.ShortNames = []string{"t"} }, true},
		"the order of versions": {func(d *definition) { d.Spec.Versions[0], d.Spec.Versions[1] = d.Spec.Versions[1], d.Spec.Versions[0] }, true},
		"the kind":              {func(d *definition) { d.Spec.Names.Kind = "Dye" }, false},
		"the plural":            {func(d *definition) { d.Spec.Names.Plural = "dyes" }, false},
		"the scope":             {func(d *definition) { d.Spec.Scope = apiextensionsv1.ClusterScoped }, false},
		"a served version":      {func(d *definition) { d.Spec.Versions[1].Served = false }, false},
		"the stored version":    {func(d *definition) { d.Spec.Versions[0].Storage, d.Spec.Versions[1].Storage = false, true }, false},
		"a version less":        {func(d *definition) { d.Spec.Versions = d.Spec.Versions[:1] }, false},
		"a field": {func(d *definition) {
			spec(d, 0, func(p *apiextensionsv1.JSONSchemaProps) { p.MaxProperties = new(int64(1)) })
		}, false},
		"a field of another version": {func(d *definition) { spec(d, 1, func(p *apiextensionsv1.JSONSchemaProps) { p.Type = "string" }) }, false},
		"a default": {func(d *definition) {
			spec(d, 1, func(p *apiextensionsv1.JSONSchemaProps) { p.Default = &apiextensionsv1.JSON{Raw: []byte("{}")} })
		}, false},
		"a subresource": {func(d *definition) {
			d.Spec.Versions[0].Subresources.Scale = &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.a"}
		}, false},
		"no status":         {func(d *definition) { d.Spec.Versions[1].Subresources = nil }, false},
		"no conversion":     {func(d *definition) { d.Spec.Conversion = nil }, false},
		"another converter": {func(d *definition) { d.Spec.Conversion.Webhook.ClientConfig.URL = new("https://example.org") }, false},
	} {
		assert.Equal(t, c.want, tintDefinition(nil).ReadsLike(tintDefinition(c.edit)), name)
	}
	none := func(d *definition) {
		d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.NoneConverter}
	}
	assert.True(t, tintDefinition(none).ReadsLike(tintDefinition(func(d *definition) { d.Spec.Conversion = nil })), "which is the default")
}

// Each field of a profile counts.
func TestKindReadsLike(t *testing.T) {
	was := compiled(t, nil)
	assert.True(t, was.ReadsLike(compiled(t, nil)))
	for _, f := range reflect.VisibleFields(reflect.TypeFor[api.PolicyProfileSpec]()) {
		now := *was
		field := reflect.ValueOf(&now.PolicyProfileSpec).Elem().FieldByIndex(f.Index)
		field.Set(other(field))
		assert.False(t, was.ReadsLike(&now), f.Name)
	}
	schema := func(kind string) *policykind.Schema {
		return policykind.PackSchema(&apiextensionsv1.JSONSchemaProps{Type: kind})
	}
	assert.False(t, was.WithSchema(schema("object")).ReadsLike(was.WithSchema(schema("string"))))
	assert.True(t, was.WithSchema(schema("object")).ReadsLike(was), "whose schema is not known")
	label := *was
	label.Source = policykind.Label
	assert.False(t, was.ReadsLike(&label), "a guess denies less")
}

// other returns another value than that of a field.
func other(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	if !v.IsZero() {
		return out
	}
	switch v.Kind() {
	case reflect.String:
		out.SetString("x")
	case reflect.Bool:
		out.SetBool(true)
	case reflect.Slice:
		out.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case reflect.Map:
		out.Set(reflect.MakeMap(v.Type()))
		out.SetMapIndex(reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem())
	case reflect.Pointer:
		out.Set(reflect.New(v.Type().Elem()))
	case reflect.Struct:
		for i := range v.NumField() {
			out.Field(i).Set(other(v.Field(i)))
		}
	case reflect.Int, reflect.Int32, reflect.Int64:
		out.SetInt(1)
	default:
		panic(v.Kind())
	}
	return out
}
