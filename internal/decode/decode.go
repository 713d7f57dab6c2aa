// Package decode reads the JSON of the API server.
//
// It reads what sigs.k8s.io/json reads, which is how the API server itself does
// it: names in their very case, the last of two fields of one name, whole numbers
// in any as int64. It does so in a third of the time, by the one-pass reader of
// go-json-experiment; what that one refuses is read again by sigs.k8s.io/json,
// whose answer, and whose error, then stands. Where they would differ is a list
// of a typed field that is there twice, which the API server never sends.
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

// lenient reads what the API server reads.
var lenient = gojson.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// As reads JSON as a T, whose fields of type any, if there are some, have to be
// read by a method of their own: whole numbers would be float64 in them. The
// error is that of sigs.k8s.io/json.
func As[T any](data []byte) (*T, error) {
	fast := new(T)
	if gojson.Unmarshal(data, fast, lenient) == nil {
		return fast, nil
	}
	out := new(T)
	return out, json.UnmarshalCaseSensitivePreserveInts(data, out)
}

// Object reads a JSON object, whole numbers as int64, others as float64; null is
// nil. The error is that of sigs.k8s.io/json.
func Object(data []byte) (map[string]any, error) {
	if fast, err := object(data); err == nil {
		return fast, nil
	}
	var out map[string]any
	return out, json.UnmarshalCaseSensitivePreserveInts(data, &out)
}

// Value reads any JSON value, numbers as Object does. The error is that of
// sigs.k8s.io/json.
func Value(data []byte) (any, error) {
	if fast, err := onlyValue(data); err == nil {
		return fast, nil
	}
	var out any
	return out, json.UnmarshalCaseSensitivePreserveInts(data, &out)
}

var errNotObject = errors.New("not an object")

var errTrailingData = errors.New("something behind the value")

// one reads the only value.
func onlyValue(data []byte) (any, error) {
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
	v, err := onlyValue(data)
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

// number reads a number that is written as a whole one as int64 if it fits.
func number(text string) (any, error) {
	if !strings.ContainsAny(text, ".eE") {
		if i, err := strconv.ParseInt(text, 10, 64); err == nil {
			return i, nil
		}
	}
	return strconv.ParseFloat(text, 64)
}
