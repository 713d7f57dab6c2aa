package webhook

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// inVersion has a request made in another version, as one of a subresource if that is
// not empty.
func inVersion(r *admissionv1.AdmissionRequest, subresource string) *admissionv1.AdmissionRequest {
	other := r.Kind
	other.Version = "v1alpha9"
	r.RequestKind, r.SubResource = &other, subresource
	return r
}

// at is a policy in a state.
func at(policy, version string) string {
	return strings.Replace(policy, "metadata: {", `metadata: {uid: u, resourceVersion: "`+version+`", `, 1)
}

// prunedAuth is gatewayAuth as a version has it that knows no overrides.
var prunedAuth = gatewayAuth[:strings.Index(gatewayAuth, "  overrides:")]

func readsAs(t *testing.T, manifest string) func(context.Context, *policykind.Kind, api.Ref) (snapshot.Object, error) {
	return func(_ context.Context, kind *policykind.Kind, _ api.Ref) (snapshot.Object, error) {
		return snapshot.Decode(kind.Ref(), kind, toJSON(t, manifest), 0)
	}
}

// Both objects of a write in another version lack what that version does not have.
func TestOtherVersionIsComparedWithStoredPolicy(t *testing.T) {
	noClient := Options{}
	stored := Options{Stored: readsAs(t, at(gatewayAuth, "2"))}
	for sentence, c := range map[string]struct {
		options Options
		request *admissionv1.AdmissionRequest
		want    string // of the denial, "" for none
	}{
		"by its status, stored as the cache has it": {noClient, inVersion(update(t, at(prunedAuth, "1"), at(prunedAuth, "1")), "status"), "OverrideRemoved: "},
		"by its status, stored later than that":     {stored, inVersion(update(t, at(prunedAuth, "2"), at(prunedAuth, "2")), "status"), "OverrideRemoved: "},
		"by its status in that version alone": {
			stored, func() *admissionv1.AdmissionRequest {
				r := inVersion(update(t, at(prunedAuth, "2"), at(prunedAuth, "2")), "status")
				r.Kind = *r.RequestKind
				return r
			}(), "OverrideRemoved: ",
		},
		"as a whole, stored later":      {stored, inVersion(update(t, at(prunedAuth, "2"), at(prunedAuth, "2")), ""), "OverrideRemoved: "},
		"deleted, stored later":         {stored, inVersion(remove(t, at(prunedAuth, "2")), ""), "OverrideRemoved: "},
		"by a version that has it all":  {stored, inVersion(update(t, at(gatewayAuth, "2"), at(gatewayAuth, "2")), "status"), ""},
		"that is stored in this moment": {Options{Stored: readsAs(t, at(gatewayAuth, "3"))}, inVersion(update(t, at(prunedAuth, "2"), at(prunedAuth, "2")), ""), "OverrideRemoved: "},
		"that does not exist any more": {
			Options{Stored: func(context.Context, *policykind.Kind, api.Ref) (snapshot.Object, error) { return nil, nil }},
			inVersion(remove(t, at(prunedAuth, "2")), ""), ": AuthPolicy infra/gw-auth not found; retry in 1s",
		},
		"that cannot be read": {
			Options{Stored: func(context.Context, *policykind.Kind, api.Ref) (snapshot.Object, error) {
				return nil, errors.New("no")
			}},
			inVersion(remove(t, at(prunedAuth, "2")), ""), ": no; retry in 1s",
		},
		"with no one to ask": {noClient, inVersion(remove(t, at(prunedAuth, "2")), ""), "cannot evaluate this write: cannot read the stored policy: no client; retry in 1s"},
	} {
		t.Run(sentence, func(t *testing.T) {
			d := newTestServer(t, c.options, cluster, at(gatewayAuth, "1"))
			a := d.validated(t, c.request)
			if c.want == "" {
				assert.True(t, a.Allowed)
				assert.Empty(t, a.Warnings)
				return
			}
			assert.Contains(t, said(t, a), c.want)
		})
	}
}

// An object that is being deleted is spared where it could not be evaluated, not
// where another version does not have what it loses.
func TestOtherVersionIsNotASystemWrite(t *testing.T) {
	going := func(policy string) string {
		return strings.Replace(at(policy, "1"), "metadata: {", `metadata: {finalizers: [a/b], deletionTimestamp: "2026-01-01T00:00:00Z", `, 1)
	}
	d := newTestServer(t, Options{}, cluster, going(gatewayAuth))
	a := d.validated(t, inVersion(update(t, going(prunedAuth), going(prunedAuth)), "status"))
	assert.Contains(t, said(t, a), "OverrideRemoved: ")
}

// What another version has and the one that is read has not is not read.
func TestOtherVersionIsCoercedToReadSchema(t *testing.T) {
	var schema apiextensionsv1.JSONSchemaProps
	require.NoError(t, yaml.Unmarshal([]byte(`{type: object, properties: {spec: {type: object, properties: {targetRef: {type: object, x-kubernetes-preserve-unknown-fields: true}, `+
		`overrides: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}}`), &schema))
	paint, err := policykind.Compile(api.PolicyProfileSpec{
		Group: "policies.example.com", Kind: "Paint", Class: api.Inherited, Targets: api.ProfileTargets{Fields: []string{"targetRef"}},
		Blocks: api.ProfileBlocks{Overrides: []string{"overrides", "override"}},
	}, policykind.Cluster)
	require.NoError(t, err)
	paint = paint.WithSchema(policykind.PackSchema(&schema))
	s := snapshot.New()
	s.AddKind(paint)
	s.KindListed(paint.Ref())
	const was = `
apiVersion: policies.example.com/v1
kind: Paint
metadata: {namespace: infra, name: p, uid: u, resourceVersion: "1"}
spec: {targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}, overrides: {a: {b: c}}}
`
	d := newTestServer(t, Options{Store: s, Guard: &guard.Guard{}}, cluster, was)
	is := strings.Replace(was, "overrides:", "override:", 1)
	assert.Contains(t, said(t, d.validated(t, inVersion(update(t, was, is), ""))), "OverrideRemoved: ")
	assert.True(t, d.validated(t, update(t, was, is)).Allowed, "in the version itself the API server has removed it")

	broken := inVersion(update(t, was, was), "")
	broken.Object.Raw = []byte("[]")
	assert.Contains(t, said(t, d.validated(t, broken)), "object: read Paint.policies.example.com: ")
	assert.Equal(t, metav1.GroupVersionKind{Group: "policies.example.com", Version: "v1", Kind: "Paint"}, broken.Kind)
}
