package webhook

import (
	"testing"

	"github.com/stretchr/testify/assert"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"overrule.dev/overrule/internal/inflight"
	"overrule.dev/overrule/test/tables"
)

func TestPreconditionOf(t *testing.T) {
	for name, c := range tables.Read[map[string]struct {
		Request admissionv1.AdmissionRequest
		Want    inflight.Precondition
	}](t, "testdata/tables/preconditions.yaml") {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.Want, preconditionOf(&c.Request)) })
	}
	spaced := runtime.RawExtension{Raw: []byte("{\n  \"a\" : 1.5e3 ,\n  \"spec\" : [ {\"uid\" : \"\\\\\"} , null ] ,\n  \"metadata\" : { \"n\" : true , \"uid\" : \"u\" }\n}")}
	assert.Equal(t, inflight.Precondition{UID: "u"}, preconditionOf(&admissionv1.AdmissionRequest{Operation: admissionv1.Delete, OldObject: spaced}), "what comes after the spec")
}
