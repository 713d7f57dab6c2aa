package webhook

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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

// FuzzJSONField holds the look at one member to the standard library, where each
// name comes once and unescaped; on what is no JSON it only must not panic.
func FuzzJSONField(f *testing.F) {
	for _, seed := range []string{`{"a":1}`, `{"b":[1,{"a":2}],"a":"x\"}"}`, ` { "a" : {"b":{}} , "c":-1.5e3 } `, `{"a":tru`, `{"a`, `{"a":"\`, `[]`, `{"a":}`, ``} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got := jsonField(data, "a")
		var object map[string]json.RawMessage
		if !json.Valid(data) || json.Unmarshal(data, &object) != nil || object == nil || len(object) != members(data) {
			return
		}
		if want, ok := object["a"]; ok && want != nil {
			require.NotNil(t, got, "%s", data)
			require.JSONEq(t, string(want), string(got), "%s", data)
		}
	})
}

// members counts the names in an object that come as they are; -1 if some come
// otherwise.
func members(data []byte) int {
	n := 0
	d := json.NewDecoder(bytes.NewReader(data))
	_, _ = d.Token()
	for d.More() {
		name, _ := d.Token()
		if text, ok := name.(string); !ok || !bytes.Contains(data, []byte(`"`+text+`"`)) {
			return -1
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return -1
		}
		n++
	}
	return n
}
