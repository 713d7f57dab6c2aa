package ratelimit

import (
	_ "embed" // the schema
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"overrule.dev/overrule/internal/decode"
	"overrule.dev/overrule/internal/editdistance"
)

//go:embed limit.yaml
var schemaFile []byte

// schema is the schema of a value.
//
// It is not validated with kube-openapi, since policies come from anyone: that compares each
// error with all others, and validates the items of a list that has too many, so that a policy
// of 400 KB can take minutes.
type schema struct {
	Type        string             `json:"type"` // as decode.TypeName says; numbers are integers of at least 1
	Description string             `json:"description"`
	Required    []string           `json:"required"`
	Properties  map[string]*schema `json:"properties"`
	Instead     map[string]string  `json:"instead"`
	Items       *schema            `json:"items"`
	MinItems    int                `json:"minItems"`
	MaxItems    int                `json:"maxItems"`
	MaxLength   int                `json:"maxLength"` // in bytes
	Enum        []string           `json:"enum"`
	Pattern     *regexp.Regexp     `json:"pattern"`
	Format      string             `json:"format"` // one of formats
}

// limitSchema returns the schema of a limit.
var limitSchema = sync.OnceValue(func() *schema {
	s := new(schema)
	if err := yaml.UnmarshalStrict(schemaFile, s); err != nil {
		panic(err) //nolint:forbidigo // it is part of the program, and tests read it
	}
	return s
})

func (s *schema) must() string { return "must be " + s.Description }

// validator validates a limit, and collects the errors.
type validator struct {
	errs   field.ErrorList
	budget *Budget // of the policy
}

func (v *validator) add(err *field.Error) { v.errs = append(v.errs, err) }

func (v *validator) invalid(at *field.Path, value any, format string, args ...any) {
	v.add(field.Invalid(at, value, fmt.Sprintf(format, args...)))
}

// truncate shortens a string of the user for a message.
func truncate(s string) string {
	const maxShown = 100
	if len(s) <= maxShown {
		return s
	}
	return strings.ToValidUTF8(s[:maxShown], "") + "…"
}

// value validates a value against its schema.
func (v *validator) value(at *field.Path, s *schema, value any) {
	if value != nil && decode.TypeName(value) != s.Type {
		v.add(field.TypeInvalid(at, decode.TypeName(value), s.must()))
		return
	}
	switch value := value.(type) {
	case nil:
		v.add(field.Required(at, s.must()))
	case map[string]any:
		v.object(at, s, value)
	case []any:
		v.list(at, s, value)
	case string:
		v.text(at, s, value)
	case int64:
		if value < 1 {
			v.add(field.Invalid(at, value, s.must()))
		}
	case float64:
		// 2^63 is the least float64 that overflows int64
		if value < 1 || value >= 1<<63 || value != math.Trunc(value) {
			v.add(field.Invalid(at, value, s.must()))
		}
	}
}

// object validates the fields of an object. A field that is null is absent, as for the API
// server.
func (v *validator) object(at *field.Path, s *schema, fields map[string]any) {
	for _, name := range s.Required {
		if fields[name] == nil {
			v.value(at.Child(name), s.Properties[name], nil)
		}
	}
	for name, value := range fields {
		if s.Properties[name] == nil {
			v.add(field.Forbidden(at.Child(truncate(name)), s.unknownField(name)))
		} else if value != nil {
			v.value(at.Child(name), s.Properties[name], value)
		}
	}
}

// unknownField returns the detail of the error for an unknown field.
func (s *schema) unknownField(name string) string {
	known := slices.Sorted(maps.Keys(s.Properties))
	if instead, ok := s.Instead[name]; ok {
		return "unknown field: " + instead
	}
	if closest := editdistance.Closest(name, known); closest != "" {
		return "unknown field: did you mean " + closest + "?"
	}
	return "unknown field: must be one of " + strings.Join(known, ", ")
}

func (v *validator) list(at *field.Path, s *schema, items []any) {
	switch {
	case len(items) > s.MaxItems:
		v.add(field.TooMany(at, len(items), s.MaxItems))
		return
	case len(items) < s.MinItems:
		v.value(at, s, nil)
	}
	for i, item := range items {
		v.value(at.Index(i), s.Items, item)
	}
}

func (v *validator) text(at *field.Path, s *schema, text string) {
	switch {
	case s.Enum != nil && !slices.Contains(s.Enum, text):
		v.add(field.NotSupported(at, text, s.Enum))
	case s.Enum == nil && len(text) > s.MaxLength:
		v.add(field.TooLong(at, "", s.MaxLength))
	case s.Pattern != nil && !s.Pattern.MatchString(text):
		v.add(field.Invalid(at, text, s.must()))
	case s.Format != "":
		if err := formats[s.Format](text); err != nil {
			v.add(field.Invalid(at, text, err.Error()))
		}
	}
}
