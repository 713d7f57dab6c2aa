package cache

import (
	"testing"

	"github.com/stretchr/testify/assert"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"overrule.dev/overrule/internal/snapshot"
)

// The scales of a kind follow its definition, even if nothing else changes.
func TestServedScalesFollowDefinition(t *testing.T) {
	r := newTestRegistry(t)
	r.replace(r.definitionsOf(colorCRD))
	scales := func() (out []string) {
		for _, s := range r.Served() {
			out = append(out, s.Scales...)
		}
		return out
	}
	crd := colorCRD.obj()
	crd.Spec.Versions[0].Subresources = &apiextensionsv1.CustomResourceSubresources{
		Scale: &apiextensionsv1.CustomResourceSubresourceScale{SpecReplicasPath: ".spec.a"},
	}
	version := crd.Spec.Versions[0].Name
	r.kindsWereChanged()
	started := len(r.started)

	r.put(snapshot.ParseDefinition(crd))
	assert.Equal(t, []string{version}, scales())
	assert.True(t, r.kindsWereChanged())

	r.put(snapshot.ParseDefinition(crd))
	assert.False(t, r.kindsWereChanged(), "nothing changed")

	crd.Spec.Versions[0].Subresources.Status = &apiextensionsv1.CustomResourceSubresourceStatus{}
	assert.False(t, r.Served()[0].Status)
	r.put(snapshot.ParseDefinition(crd))
	assert.True(t, r.Served()[0].Status)
	assert.True(t, r.kindsWereChanged())

	r.replace(r.definitionsOf(colorCRD))
	assert.False(t, r.Served()[0].Status)
	assert.Empty(t, scales())
	assert.True(t, r.kindsWereChanged(), "a list may have it, too")
	assert.Len(t, r.started, started, "policies are not read again")
}
