package decode

import (
	"encoding/json"
	"errors"
	"testing"

	gojson "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	sigsjson "sigs.k8s.io/json"

	api "overrule.dev/overrule/api/v1alpha1"
)

// The API server decodes with sigs.k8s.io/json, whose result is the expected one. The texts
// are corner cases of JSON.
var texts = map[string]string{
	"an object":                        `{"a": {"b": [1, -2, 3.5, "x", true, false, null, {}, []]}}`,
	"whole numbers":                    `{"a": 0, "b": -0, "c": 9223372036854775807, "d": -9223372036854775808}`,
	"a number that fits no int64":      `{"a": 9223372036854775808, "b": -9223372036854775809}`,
	"numbers with a point or exponent": `{"a": 1.0, "b": 1e3, "c": 1E-3, "d": -0.0}`,
	"a number that fits no float64":    `{"a": 1e400}`,
	"a name twice":                     `{"a": 1, "a": {"b": 1}, "a": {"c": 2}}`,
	"names in another case":            `{"A": 1, "a": 2}`,
	"strings with escapes":             `{"\u0061\n": "\ud83d\ude00 \u00e9 \"\\\/"}`,
	"a lone surrogate":                 `{"a": "\ud800"}`,
	"a string that is no UTF-8":        "{\"a\": \"\xff\xfe\"}",
	"null":                             `null`,
	"white space":                      " \n\t{ \"a\" : 1 } \r\n",
	"a list":                           `[1]`,
	"a number":                         `1`,
	"something behind it":              `{"a": 1} x`,
	"a second value":                   `{"a": 1} {"a": 2}`,
	"nothing":                          ``,
	"a part":                           `{"a": [1, 2`,
	"a comma too many":                 `{"a": 1,}`,
	"a name without quotes":            `{a: 1}`,
	"no value":                         `{"a"}`,
	"a bad escape":                     `{"a": "\x"}`,
}

func TestObjectMatchesAPIServer(t *testing.T) {
	for name, text := range texts {
		t.Run(name, func(t *testing.T) { sameObject(t, []byte(text)) })
	}
}

func TestValueMatchesAPIServer(t *testing.T) {
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			var want any
			wantErr := sigsjson.UnmarshalCaseSensitivePreserveInts([]byte(text), &want)
			got, err := Value([]byte(text))
			if wantErr != nil {
				require.EqualError(t, err, wantErr.Error())
				return
			}
			require.NoError(t, err)
			assert.Equal(t, want, got)
		})
	}
}

func sameObject(t *testing.T, data []byte) {
	t.Helper()
	var want map[string]any
	wantErr := sigsjson.UnmarshalCaseSensitivePreserveInts(data, &want)
	got, err := Object(data)
	if wantErr != nil {
		require.EqualError(t, err, wantErr.Error())
		return
	}
	require.NoError(t, err)
	assert.Equal(t, want, got)
}

// typed has fields of all types that are decoded.
type typed struct {
	Name   string            `json:"name"`
	Count  int32             `json:"count"`
	Maybe  *string           `json:"maybe"`
	Labels map[string]string `json:"labels"`
	Items  []typed           `json:"items"`
	Raw    json.RawMessage   `json:"raw"`
}

var typedTexts = map[string]string{
	"all fields":                     `{"name": "x", "count": 3, "maybe": "y", "labels": {"a": "b"}, "items": [{"name": "z"}], "raw": {"q": [1, 2]}}`,
	"nulls":                          `{"name": null, "count": null, "maybe": null, "labels": null, "items": null, "raw": null}`,
	"names in another case":          `{"Name": "x", "COUNT": 3}`,
	"a name twice":                   `{"name": "x", "name": "y", "labels": {"a": "1"}, "labels": {"b": "2"}}`,
	"a field that is not known":      `{"other": {"deep": [1]}}`,
	"a text for a number":            `{"count": "3"}`,
	"a number for a text":            `{"name": 3}`,
	"a fraction for a whole number":  `{"count": 3.5}`,
	"a whole number with a point":    `{"count": 3.0}`,
	"a number that does not fit":     `{"count": 4294967296}`,
	"an object for a list":           `{"items": {}}`,
	"a list for an object":           `{"labels": []}`,
	"a string that is no UTF-8":      "{\"name\": \"\xff\", \"labels\": {\"\xfe\": \"\xff\"}}",
	"no object":                      `[]`,
	"null":                           `null`,
	"something behind it":            `{} {}`,
	"a part":                         `{"name": "x`,
	"a mistake in what is not known": `{"other": {"deep": [1,]}}`,
}

func TestAsMatchesAPIServer(t *testing.T) {
	for name, text := range typedTexts {
		t.Run(name, func(t *testing.T) { sameTyped(t, []byte(text)) })
	}
}

func sameTyped(t *testing.T, data []byte) {
	t.Helper()
	var want typed
	wantErr := sigsjson.UnmarshalCaseSensitivePreserveInts(data, &want)
	got, err := As[typed](data)
	if wantErr != nil {
		require.EqualError(t, err, wantErr.Error())
		return
	}
	require.NoError(t, err)
	assert.Equal(t, want, *got)
}

func FuzzDecode(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
	for _, text := range typedTexts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		sameObject(t, data)
		if !errors.Is(gojson.Unmarshal(data, new(any)), jsontext.ErrDuplicateName) {
			sameTyped(t, data)
		}
	})
}

// sigs.k8s.io/json merges the items of the two by accident.
func TestDuplicateList(t *testing.T) {
	got, err := As[typed]([]byte(`{"items": [{"name": "a", "count": 1}], "items": [{"name": "c"}]}`))
	require.NoError(t, err)
	assert.Equal(t, []typed{{Name: "c"}}, got.Items)
}

// A type that the fast decoder does not support would silently be decoded by the slow one.
func TestTypesUseFastPath(t *testing.T) {
	for name, into := range map[string]any{
		"AdmissionReview":          &admissionv1.AdmissionReview{},
		"Namespace":                &corev1.Namespace{},
		"Service":                  &corev1.Service{},
		"CustomResourceDefinition": &apiextensionsv1.CustomResourceDefinition{},
		"PolicyProfile":            &api.PolicyProfile{},
		"PolicyConstraint":         &api.PolicyConstraint{},
		"ClusterPolicyConstraint":  &api.ClusterPolicyConstraint{},
		"GatewayClass":             &gatewayv1.GatewayClass{},
		"Gateway":                  &gatewayv1.Gateway{},
		"ListenerSet":              &gatewayv1.ListenerSet{},
		"HTTPRoute":                &gatewayv1.HTTPRoute{},
		"ReferenceGrant":           &gatewayv1.ReferenceGrant{},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := json.Marshal(into)
			require.NoError(t, err)
			require.NoError(t, gojson.Unmarshal(data, into, lenient))
		})
	}
}
