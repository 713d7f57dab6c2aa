package webhook

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/guard"
	"overrule.dev/overrule/internal/policykind"
)

// asked is what a request asks the guard, by a server that knows the cluster.
func asked(t *testing.T, r *admissionv1.AdmissionRequest) guard.Change {
	t.Helper()
	v, _ := newTestServer(t, Options{}, cluster).opts.Store.View()
	c, err := decodeChange(v, r, testTime)
	require.NoError(t, err)
	return c
}

// withMetadata adds fields to the metadata of gatewayAuth.
func withMetadata(fields string) string {
	return strings.Replace(gatewayAuth, "{namespace: infra", "{"+fields+", namespace: infra", 1)
}

const (
	owned       = `ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: base, uid: u1}]`
	ownedByTwo  = `ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: base, uid: u1}, {apiVersion: v1, kind: ConfigMap, name: bait, uid: u2}]`
	acknowledge = `annotations: {overrule.dev/acknowledge-blast-radius: 0af1}`
	collector   = "system:serviceaccount:kube-system:generic-garbage-collector"
)

func TestReadMetadata(t *testing.T) {
	type fields struct {
		owner, acknowledged string
		collected           bool
	}
	for name, c := range map[string]struct {
		op            admissionv1.Operation
		before, after string
		user          string
		want          fields
	}{
		"nothing": {op: admissionv1.Update, before: gatewayAuth, after: gatewayAuth},
		"one more owner": {
			op: admissionv1.Update, before: withMetadata(owned), after: withMetadata(ownedByTwo), want: fields{owner: "ConfigMap bait"},
		},
		"two at once": {
			op: admissionv1.Update, before: gatewayAuth, after: withMetadata(ownedByTwo), want: fields{owner: "ConfigMap base, ConfigMap bait"},
		},
		"an owner that goes":           {op: admissionv1.Update, before: withMetadata(owned), after: gatewayAuth},
		"an object born with an owner": {op: admissionv1.Create, after: withMetadata(owned)},
		"one that an edit takes away":  {op: admissionv1.Update, before: withMetadata(acknowledge), after: gatewayAuth},
		"an acknowledgement of a deletion stands on the object": {
			op: admissionv1.Delete, before: withMetadata(acknowledge), want: fields{acknowledged: "0af1"},
		},
		"the garbage collector deletes what has an owner": {
			op: admissionv1.Delete, before: withMetadata(owned), user: collector, want: fields{collected: true},
		},
		"so does a controller manager that has one user for all": {
			op: admissionv1.Delete, before: withMetadata(owned), user: "system:kube-controller-manager", want: fields{collected: true},
		},
		"without an owner there is nothing to collect": {op: admissionv1.Delete, before: gatewayAuth, user: collector},
		"someone else deletes what has an owner":       {op: admissionv1.Delete, before: withMetadata(owned), user: "jane"},
		"the garbage collector edits": {
			op: admissionv1.Update, before: withMetadata(owned), after: withMetadata(owned), user: collector,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := request(t, c.op, c.before, c.after)
			r.UserInfo = authenticationv1.UserInfo{Username: c.user, Groups: []string{"g"}, Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}}}
			got := asked(t, r)
			assert.Equal(t, c.want, fields{got.Owner, got.Acknowledged, got.GarbageCollected})
			assert.Equal(t, &r.UserInfo, got.User, "all that is known of the user")
		})
	}
}

func TestUnreadableMetadata(t *testing.T) {
	v, _ := newTestServer(t, Options{}, cluster).opts.Store.View()
	for name, c := range map[string]struct {
		before, after string
		says          string
	}{
		"of the object":     {`{"metadata":{}}`, `{"metadata":{"ownerReferences":"x"}}`, "object.metadata: json: cannot unmarshal string"},
		"of the old object": {`{"metadata":{"ownerReferences":"x"}}`, `{"metadata":{}}`, "oldObject.metadata: json: cannot unmarshal string"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decodeChange(v, &admissionv1.AdmissionRequest{
				Kind: kindAuthPolicy(), Operation: admissionv1.Update, OldObject: raw(c.before), Object: raw(c.after),
			}, testTime)
			assert.ErrorContains(t, err, c.says)
		})
	}
}

func TestTerminatingNamespace(t *testing.T) {
	got := asked(t, update(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: app, labels: {tier: gold}}",
		`{apiVersion: v1, kind: Namespace, metadata: {name: app, deletionTimestamp: "2026-03-01T12:00:00Z"}}`))
	assert.Equal(t, &gateway.Namespace{Name: "app", Labels: map[string]string{"tier": "gold", "kubernetes.io/metadata.name": "app"}}, got.Before)
	assert.Equal(t, &gateway.Namespace{Name: "app", Labels: map[string]string{"kubernetes.io/metadata.name": "app"}, Terminating: true, Deleting: true}, got.After)
}

func TestDefinitionIsDecoded(t *testing.T) {
	got := asked(t, remove(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: authpolicies.kuadrant.io, labels: {gateway.networking.k8s.io/policy: inherited}}
spec: {group: kuadrant.io, scope: Namespaced, names: {kind: AuthPolicy, plural: authpolicies}}
`))
	d, ok := got.Before.(*policykind.Definition)
	require.True(t, ok)
	assert.Equal(t, api.PolicyKind{Group: "kuadrant.io", Kind: "AuthPolicy"}, d.Defines())
	assert.Equal(t, map[string]string{"gateway.networking.k8s.io/policy": "inherited"}, d.Labels)
}

// mostly is a review of a write whose metadata say nothing about the write
// itself, though they mention it.
func TestMetadataMarkersInStrings(t *testing.T) {
	h, err := parseMetadata([]byte(`{"metadata":{"managedFields":[{"fieldsV1":{"f:metadata":{"f:ownerReferences":{}}}}],
		"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"ownerReferences\":1}"}}}`))
	require.NoError(t, err)
	assert.Equal(t, &metadata{}, h, "it is not even looked at")
	h, err = parseMetadata([]byte(`{"metadata":{"ownerReferences":[{"kind":"ConfigMap","name":"c","uid":"u"}]}}`))
	require.NoError(t, err)
	assert.Equal(t, []metav1.OwnerReference{{Kind: "ConfigMap", Name: "c", UID: "u"}}, h.Metadata.OwnerReferences)
}
