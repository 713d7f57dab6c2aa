package policykind

import (
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"

	api "overrule.dev/overrule/api/v1alpha1"
)

// rank reads the rank of the policy from the fields or annotations of spec.order.
func (r *reader) rank(root *field.Path, spec map[string]any, annotations map[string]string) {
	o := r.kind.Order
	if o == nil {
		return
	}
	r.policy.Rank = r.orderValue(&o.OrderKey, root, spec, annotations)
	if o.Then != nil {
		r.policy.Rank = r.policy.Rank<<orderBits + r.orderValue(o.Then, root, spec, annotations)
	}
}

// orderBits are the bits of one order value. The second value takes the bits below
// the first.
const orderBits = 32

// orderValue returns the value of one order key, or its default.
func (r *reader) orderValue(o *api.OrderKey, root *field.Path, spec map[string]any, annotations map[string]string) int {
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
		return len(o.Values) // after all listed values
	}
	n, err := parseOrderValue(at, o, text)
	if err != nil {
		r.errs = append(r.errs, err)
	}
	return n
}

// parseOrderValue returns the position of a value in an order; the lower comes first.
func parseOrderValue(at *field.Path, o *api.OrderKey, text string) (int, *field.Error) {
	if len(o.Values) > 0 {
		i := slices.Index(o.Values, text)
		if i < 0 {
			return 0, field.NotSupported(at, text, o.Values)
		}
		return i, nil
	}
	n, err := strconv.ParseInt(text, 10, orderBits)
	if err != nil {
		return 0, field.Invalid(at, text, "must be a 32-bit integer")
	}
	if o.HighestFirst {
		n = -n
	}
	return int(n), nil
}
