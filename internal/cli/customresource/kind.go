package customresource

import (
	"errors"
	"fmt"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// ErrDefinition is the error of a definition that the API server would not accept: its
// objects cannot be validated.
var ErrDefinition = errors.New("invalid CustomResourceDefinition")

// Kind validates the objects of a kind. It is safe for concurrent use. Its schemas are
// compiled when they are first needed.
type Kind struct {
	crd      *apiextensionsv1.CustomResourceDefinition
	versions map[string]*version
}

// version is a version of a kind.
type version struct {
	apiextensionsv1.CustomResourceDefinitionVersion
	prunes    bool
	compiled  sync.Once
	schema    *schema.Structural
	validator validation.SchemaValidator
	err       error
	withCEL   sync.Once
	rules     *cel.Validator // nil without CEL rules
}

// New returns the kind of a definition, which must not be edited afterwards.
func New(crd *apiextensionsv1.CustomResourceDefinition) *Kind {
	k := &Kind{crd: crd, versions: make(map[string]*version)}
	for _, v := range crd.Spec.Versions {
		k.versions[v.Name] = &version{CustomResourceDefinitionVersion: v, prunes: !crd.Spec.PreserveUnknownFields}
	}
	return k
}

// Name returns the name of the definition.
func (k *Kind) Name() string { return k.crd.Name }

// Namespaced reports whether the kind is namespaced.
func (k *Kind) Namespaced() bool { return k.crd.Spec.Scope == apiextensionsv1.NamespaceScoped }

// served returns the names of the served versions.
func (k *Kind) served() []string {
	var out []string
	for _, v := range k.crd.Spec.Versions {
		if v.Served {
			out = append(out, v.Name)
		}
	}
	return out
}

// compile compiles the schema of a version. The error wraps ErrDefinition.
func (v *version) compile() error {
	v.compiled.Do(func() {
		if err := v.compileSchema(); err != nil {
			v.err = fmt.Errorf("%w: version %s: %w", ErrDefinition, v.Name, err)
		}
	})
	return v.err
}

func (v *version) compileSchema() error {
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return errors.New("schema.openAPIV3Schema is required")
	}
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, &props, nil); err != nil {
		return err
	}
	structural, err := schema.NewStructural(&props)
	if err != nil {
		return fmt.Errorf("the schema is not structural: %w", err)
	}
	if errs := schema.ValidateStructural(nil, structural); len(errs) > 0 {
		return fmt.Errorf("the schema is not structural: %w", errs.ToAggregate())
	}
	structural = structural.DeepCopy() // it shares its defaults with props
	if err := defaulting.PruneDefaults(structural); err != nil {
		return fmt.Errorf("prune defaults: %w", err)
	}
	v.schema = structural
	v.validator, _, err = validation.NewSchemaValidator(&props)
	return err
}

// celRules returns the CEL rules of a version, nil if it has none.
func (v *version) celRules() *cel.Validator {
	v.withCEL.Do(func() { v.rules = cel.NewValidator(v.schema, true, celconfig.PerCallLimit) })
	return v.rules
}
