package customresource

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"overrule.dev/overrule/internal/editdistance"
)

// unknownProblems returns the problems of the fields that were pruned, in the order of
// the API server, each with the name that was probably meant.
func (v *version) unknownProblems(paths []string, written map[string]any) []Problem {
	var out []Problem
	for _, path := range paths {
		p := Problem{Field: path, Message: fmt.Sprintf("unknown field %q", path)}
		if meant := v.closest(path, written); meant != "" {
			p.Message += fmt.Sprintf(": did you mean %q?", meant)
		}
		out = append(out, p)
	}
	return out
}

// closest returns the field that is probably meant by the last one of a path, "" if none
// is close.
func (v *version) closest(path string, written map[string]any) string {
	if name, ok := strings.CutPrefix(path, "metadata."); ok {
		return editdistance.Closest(name, metadataFields())
	}
	at, value, rest := v.schema, any(written), path
	for {
		name, child, after, ok := cutField(value, rest)
		if !ok || at == nil {
			return ""
		}
		if after == "" {
			return editdistance.Closest(name, slices.Sorted(maps.Keys(at.Properties)))
		}
		at, value, rest = childSchema(at, value, name), child, after
	}
}

// childSchema returns the schema of a field or an item, nil if there is none.
func childSchema(s *schema.Structural, value any, name string) *schema.Structural {
	if _, isList := value.([]any); isList {
		return s.Items
	}
	if property, ok := s.Properties[name]; ok {
		return &property
	}
	if s.AdditionalProperties != nil {
		return s.AdditionalProperties.Structural
	}
	return nil
}

// cutField removes the first field of a path, or the first index, and returns its value.
// Names may contain dots: of those that the value has, the longest is meant.
func cutField(value any, path string) (name string, child any, rest string, ok bool) {
	switch value := value.(type) {
	case map[string]any:
		path = strings.TrimPrefix(path, ".")
		for key, v := range value {
			after, found := strings.CutPrefix(path, key)
			if found && (after == "" || after[0] == '.' || after[0] == '[') && (!ok || len(key) > len(name)) {
				name, child, rest, ok = key, v, after, true
			}
		}
	case []any:
		digits, after, found := strings.Cut(strings.TrimPrefix(path, "["), "]")
		if i, err := strconv.Atoi(digits); found && err == nil && i < len(value) {
			return digits, value[i], after, true
		}
	}
	return name, child, rest, ok
}

// metadataFields returns the names of the fields of metadata.
func metadataFields() []string {
	var out []string
	for f := range reflect.TypeFor[metav1.ObjectMeta]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		out = append(out, name)
	}
	return out
}
