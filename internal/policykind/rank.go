package policykind

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	api "overrule.dev/overrule/api/v1alpha1"
)

// rank reads the policy's place in the kind's own order.
func (r *reader) rank(root *field.Path, spec map[string]any, annotations map[string]string) {
	o := r.kind.Order
	if o == nil {
		return
	}
	at := field.NewPath("metadata", "annotations").Key(o.Annotation)
	text := annotations[o.Annotation]
	if o.Field != "" {
		var value any
		if value, at = lookup(root, spec, o.Field); value != nil {
			text = fmt.Sprint(value)
		}
	}
	if text == "" {
		text = o.Default
	}
	if text == "" {
		return
	}
	n, err := rank(o, text)
	if err != nil {
		r.invalid(at, text, "%v", err)
		return
	}
	r.policy.Rank = n
}

// rank returns the place of a word in an order: the lower comes first.
func rank(o *api.ProfileOrder, text string) (int, error) {
	if len(o.Values) > 0 {
		i := slices.Index(o.Values, text)
		if i < 0 {
			return 0, fmt.Errorf("%q is none of %s", text, strings.Join(o.Values, ", "))
		}
		return i, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is no whole number", text)
	}
	if o.HighestFirst {
		n = -n
	}
	return int(n), nil
}
