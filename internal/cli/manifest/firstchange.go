package manifest

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// FirstChange returns the first field that differs from an older version of the object,
// for Locate: one of spec if there is any; "" if only removed fields differ.
func (o *Object) FirstChange(old *Object) string {
	was, is := old.Content(), o.Content()
	if spec, ok := is["spec"]; ok && !reflect.DeepEqual(was["spec"], spec) {
		return "spec" + firstChange(was["spec"], spec)
	}
	return strings.TrimPrefix(firstChange(was, is), ".")
}

// firstChange returns the rest of the path to the first difference of two values.
func firstChange(was, is any) string {
	switch is := is.(type) {
	case map[string]any:
		was, ok := was.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(is)) {
			if ok && !reflect.DeepEqual(was[name], is[name]) {
				return "." + name + firstChange(was[name], is[name])
			}
		}
	case []any:
		was, ok := was.([]any)
		for i := range is {
			switch {
			case ok && i >= len(was):
				return fmt.Sprintf("[%d]", i)
			case ok && !reflect.DeepEqual(was[i], is[i]):
				return fmt.Sprintf("[%d]%s", i, firstChange(was[i], is[i]))
			}
		}
	}
	return ""
}
