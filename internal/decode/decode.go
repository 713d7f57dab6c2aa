// Package decode decodes JSON as the API server does, and encodes it for people.
//
// The result is that of sigs.k8s.io/json, which the API server uses: names are
// case-sensitive, the last of two fields with the same name counts, and integers in
// values of type any are int64. It takes a third of the time, since it decodes in one
// pass with go-json-experiment. Input that this rejects is decoded again by
// sigs.k8s.io/json, whose result and error count. The results only differ for a list of
// a typed field that occurs twice, which the API server never sends.
package decode

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	gojson "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"sigs.k8s.io/json"
)

// lenient accepts what the API server accepts.
var lenient = gojson.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// As decodes JSON into a T. Fields of type any must have a method of their own for
// decoding: integers would be float64 in them. The error is that of sigs.k8s.io/json.
func As[T any](data []byte) (*T, error) {
	fast := new(T)
	if gojson.Unmarshal(data, fast, lenient) == nil {
		return fast, nil
	}
	out := new(T)
	return out, json.UnmarshalCaseSensitivePreserveInts(data, out)
}

// Object decodes a JSON object, integers as int64 and other numbers as float64; null
// is nil. The error is that of sigs.k8s.io/json.
func Object(data []byte) (map[string]any, error) {
	if fast, err := object(data); err == nil {
		return fast, nil
	}
	var out map[string]any
	return out, json.UnmarshalCaseSensitivePreserveInts(data, &out)
}

// Value decodes any JSON value, numbers as Object does. The error is that of
// sigs.k8s.io/json.
func Value(data []byte) (any, error) {
	if fast, err := single(data); err == nil {
		return fast, nil
	}
	var out any
	return out, json.UnmarshalCaseSensitivePreserveInts(data, &out)
}

// Objects returns those items of a decoded list that are objects.
func Objects(list any) []map[string]any {
	items, _ := list.([]any)
	out := make([]map[string]any, 0, len(items))
	for _, item := range items {
		if object, ok := item.(map[string]any); ok {
			out = append(out, object)
		}
	}
	return out
}

// TypeName returns the type of a decoded value for messages.
func TypeName(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "object"
	case []any:
		return "list"
	case string:
		return "string"
	case bool:
		return "boolean"
	default:
		return "number"
	}
}

// Field returns the raw value of a field of a JSON object, nil if it is absent. It shares
// the bytes of the object.
func Field(object []byte, name string) []byte {
	d := jsontext.NewDecoder(bytes.NewBuffer(object), lenient)
	if start, err := d.ReadToken(); err != nil || start.Kind() != '{' {
		return nil
	}
	for d.PeekKind() == '"' {
		key, err := d.ReadToken()
		found := err == nil && key.String() == name
		value, err := d.ReadValue()
		if err != nil {
			return nil
		}
		if found {
			return value
		}
	}
	return nil
}

var errNotObject = errors.New("not an object")

var errTrailingData = errors.New("data after the value")

// single decodes the only value.
func single(data []byte) (any, error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(data), lenient)
	v, err := value(d)
	if err != nil {
		return nil, err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, errTrailingData
	}
	return v, nil
}

func object(data []byte) (map[string]any, error) {
	v, err := single(data)
	if err != nil {
		return nil, err
	}
	out, ok := v.(map[string]any)
	if !ok {
		return nil, errNotObject
	}
	return out, nil
}

func value(d *jsontext.Decoder) (any, error) {
	token, err := d.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case 'n':
		return nil, nil
	case 't', 'f':
		return token.Bool(), nil
	case '"':
		return token.String(), nil
	case '0':
		return number(token.String())
	case '[':
		return list(d)
	default:
		return fields(d)
	}
}

func fields(d *jsontext.Decoder) (map[string]any, error) {
	out := make(map[string]any)
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return nil, err
		}
		key := name.String()
		if out[key], err = value(d); err != nil {
			return nil, err
		}
	}
	_, err := d.ReadToken()
	return out, err
}

func list(d *jsontext.Decoder) ([]any, error) {
	out := []any{}
	for d.PeekKind() != ']' {
		v, err := value(d)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	_, err := d.ReadToken()
	return out, err
}

// number decodes an integer that fits as int64, other numbers as float64.
func number(text string) (any, error) {
	if !strings.ContainsAny(text, ".eE") {
		if i, err := strconv.ParseInt(text, 10, 64); err == nil {
			return i, nil
		}
	}
	return strconv.ParseFloat(text, 64)
}
