package guard_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
)

func TestSecondDefinitionOfKindIsDenied(t *testing.T) {
	d := &policykind.Definition{}
	d.Name, d.Spec.Group, d.Spec.Names.Kind = "others.example.com", "example.com", "Paint"
	taken := &policykind.DefinedError{Kind: d.Defines(), By: "paints.example.com"}
	g := &guard.Guard{Engine: effective.NewEngine(), KindReader: rereading{known: known{err: fmt.Errorf("read: %w", taken)}}}
	ev, err := g.Evaluate(t.Context(), world(t, base()), guard.Change{Operation: guard.Create, After: d}, nil)
	require.NoError(t, err)
	assert.True(t, ev.Denied())
	assert.Equal(t, []string{
		"Deny NotRead: Paint.example.com, paints.example.com",
	}, findings(t, ev))
}

func TestDefinitionWithScale(t *testing.T) {
	v := world(t, base())
	defined := func(kind string, served bool) *policykind.Definition {
		d := &policykind.Definition{}
		d.Name, d.Spec.Group, d.Spec.Names.Kind = "d", "example.com", kind
		d.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: served, Subresources: &apiextensionsv1.CustomResourceSubresources{
			Scale: &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.a"},
		}}}
		return d
	}
	for name, c := range map[string]struct {
		after *policykind.Definition
		want  []string
	}{
		"of a policy kind": {defined("Paint", true), []string{
			"Warn NotRead: Paint.example.com, PolicyProfile",
		}},
		"of a version that is not served": {defined("Paint", false), nil},
		"of another kind":                 {defined("Deployment", true), nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := &guard.Guard{Engine: effective.NewEngine(), KindReader: rereading{}}
			ev, err := g.Evaluate(t.Context(), v, guard.Change{Operation: guard.Update, Before: c.after, After: c.after}, nil)
			require.NoError(t, err)
			assert.Equal(t, c.want, findingsOf(t, ev, "NotRead"))
		})
	}
}
