package manifest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cli/customresource"
	"overrule.dev/overrule/internal/policykind"
)

// The versions of each kind of a built-in profile are known, by its definition or by the list.
func TestVersionsOfBuiltinKindsAreKnown(t *testing.T) {
	known := knownVersions()
	kinds := policykind.BuiltinKinds()
	var builtin []api.PolicyKind
	for _, k := range kinds {
		builtin = append(builtin, k.Ref())
		assert.True(t, len(known[k.Ref()]) > 0 || customresource.Builtin(k.Group, k.Kind) != nil, k.Ref())
	}
	for kind := range known {
		assert.Contains(t, builtin, kind)
	}
}

// The list has all versions that the definitions among the examples serve: those of the
// stand-ins are those of the real ones.
func TestServedVersionsAreKnown(t *testing.T) {
	known := knownVersions()
	set, err := Read([]string{"../../../examples/standins", "../../../examples/crds"}, nil)
	require.NoError(t, err)
	kinds := NewKinds(nil)
	compared := 0
	for _, o := range set.Objects {
		if o.Kind != KindCRD {
			continue
		}
		require.NoError(t, kinds.AddDefinition(o), o.Name)
	}
	for _, d := range kinds.definitions {
		ref := d.Defines()
		for _, v := range d.Spec.Versions {
			if versions := known[ref]; versions != nil && v.Served {
				compared++
				assert.Contains(t, versions, v.Name, ref)
			}
		}
	}
	assert.Positive(t, compared)
}
