//go:build e2e

package kinds

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/test/env"
)

// TestStandinsHaveTheShapeOfTheRealCRDs compares what Overrule reads of a CRD: its names,
// scope, versions and label, and the fields of its targets, sections included. Both have all
// fields that the profile names.
func TestStandinsHaveTheShapeOfTheRealCRDs(t *testing.T) {
	root, err := env.Repository(t.Context())
	require.NoError(t, err)
	standins, real, err := standinsAndReal(root)
	require.NoError(t, err)
	compared := 0
	for _, standin := range standins {
		kind := policykind.BuiltinKind(api.PolicyKind{Group: standin.Spec.Group, Kind: standin.Spec.Names.Kind}) // nil for a kind of targets
		r, ok := real[standin.Name]
		t.Run(standin.Name, func(t *testing.T) {
			checkFields(t, kind, standin)
			if ok {
				checkFields(t, kind, r)
				compareShapes(t, kind, standin, r)
			}
		})
		if ok {
			compared++
		}
	}
	assert.Equal(t, len(real) > 0, compared > 0, "none of %d real CRDs is that of a stand-in", len(real))
}

// checkFields checks that a CRD has the fields that the profile of its kind names, except for
// targets and unset lists: profiles also name those of other versions.
func checkFields(t *testing.T, kind *policykind.Kind, c crd) {
	t.Helper()
	if kind != nil {
		assert.Empty(t, slices.DeleteFunc(kind.Check(stored(c)), func(missing string) bool {
			return strings.HasPrefix(missing, "spec.targets.fields") || strings.HasPrefix(missing, "spec.unset")
		}))
	}
}

func compareShapes(t *testing.T, kind *policykind.Kind, standin, r crd) {
	t.Helper()
	assert.Equal(t, r.Spec.Group, standin.Spec.Group)
	assert.Equal(t, r.Spec.Scope, standin.Spec.Scope)
	assert.Equal(t, r.Spec.Names.Kind, standin.Spec.Names.Kind)
	assert.Equal(t, r.Spec.Names.Plural, standin.Spec.Names.Plural)
	assert.Equal(t, r.Labels[policykind.LabelPolicy], standin.Labels[policykind.LabelPolicy], "the label")
	assert.Equal(t, versionsOf(r), versionsOf(standin))
	if kind == nil {
		return
	}
	for _, field := range slices.Concat(kind.Targets.Fields, kind.Targets.Selectors, kind.Targets.Workloads) {
		want, wantList, exists := fieldsOf(r, field)
		got, list, ok := fieldsOf(standin, field)
		assert.Equal(t, exists, ok, field)
		assert.Equal(t, wantList, list, "%s: a list", field)
		assert.Equal(t, want, got, field)
	}
}

// versionsOf returns the versions of a CRD, and which of them are served and stored.
func versionsOf(c crd) []string {
	var out []string
	for _, v := range c.Spec.Versions {
		out = append(out, fmt.Sprintf("%s served=%t storage=%t", v.Name, v.Served, v.Storage))
	}
	slices.Sort(out)
	return out
}

// stored returns the schema of the version of a CRD that is stored.
func stored(c crd) *apiextensionsv1.JSONSchemaProps {
	i := slices.IndexFunc(c.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Storage })
	return c.Spec.Versions[i].Schema.OpenAPIV3Schema
}

// fieldsOf returns the names of the fields of a field, in the version of a CRD that is stored,
// and whether it is a list. The path begins in the spec. ok is false if it does not exist.
func fieldsOf(c crd, path string) (names []string, list, ok bool) {
	field := stored(c).Properties["spec"]
	for name := range strings.SplitSeq(path, ".") {
		if field, ok = field.Properties[name]; !ok {
			return nil, false, false
		}
	}
	if list = field.Items != nil; list {
		field = *field.Items.Schema
	}
	return slices.Sorted(maps.Keys(field.Properties)), list, true
}
