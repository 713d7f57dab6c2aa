package webhook

import (
	"testing"

	"github.com/stretchr/testify/assert"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"overrule.dev/overrule/internal/inflight"
)

func TestPreconditionOf(t *testing.T) {
	object := func(text string) runtime.RawExtension { return runtime.RawExtension{Raw: []byte(text)} }
	stored := object(`{"kind":"A","metadata":{"labels":{"uid":"x","metadata":"y"},"managedFields":[{"f:uid":{},"k\"{":"}"}],` +
		`"ownerReferences":[{"uid":"o"}],"resourceVersion":"7","uid":"u"},"spec":{"metadata":{"uid":"z"}}}`)
	for name, c := range map[string]struct {
		request admissionv1.AdmissionRequest
		want    inflight.Precondition
	}{
		"what is created, by the uid that it has by now": {
			admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: object(`{"metadata": {"uid": "u"}}`)},
			inflight.Precondition{UID: "u"},
		},
		"what is updated, by what is stored": {
			admissionv1.AdmissionRequest{Operation: admissionv1.Update, Object: object(`{"metadata":{"uid":"u","resourceVersion":"8"}}`), OldObject: stored},
			inflight.Precondition{UID: "u", Version: "7"},
		},
		"what is deleted, likewise": {
			admissionv1.AdmissionRequest{Operation: admissionv1.Delete, OldObject: stored},
			inflight.Precondition{UID: "u", Version: "7"},
		},
		"what comes after the spec": {
			admissionv1.AdmissionRequest{Operation: admissionv1.Delete, OldObject: object("{\n  \"a\" : 1.5e3 ,\n  \"spec\" : [ {\"uid\" : \"\\\\\"} , null ] ,\n  \"metadata\" : { \"n\" : true , \"uid\" : \"u\" }\n}")},
			inflight.Precondition{UID: "u"},
		},
		"what has no metadata, by nothing": {admissionv1.AdmissionRequest{Operation: admissionv1.Delete, OldObject: object(`{"spec":{}}`)}, inflight.Precondition{}},
		"what is not there, likewise":      {admissionv1.AdmissionRequest{Operation: admissionv1.Delete}, inflight.Precondition{}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.want, preconditionOf(&c.request)) })
	}
}
