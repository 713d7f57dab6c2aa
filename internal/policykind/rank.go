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
	r.policy.Rank = r.orderValue(&o.OrderKey, root, spec, annotations)
	if o.Then != nil {
		r.policy.Rank = r.policy.Rank<<orderBits + r.orderValue(o.Then, root, spec, annotations)
	}
}

// rankBits are what a place takes: the second one is added below the first.
const orderBits = 32

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
		return len(o.Values) // behind all, where there are some
	}
	n, err := parseOrderValue(o, text)
	if err != nil {
		r.invalid(at, text, "%v", err)
	}
	return n
}

// rank returns the place of a word in an order: the lower comes first.
func parseOrderValue(o *api.OrderKey, text string) (int, error) {
	if len(o.Values) > 0 {
		i := slices.Index(o.Values, text)
		if i < 0 {
			return 0, fmt.Errorf("%q is none of %s", text, strings.Join(o.Values, ", "))
		}
		return i, nil
	}
	n, err := strconv.ParseInt(text, 10, orderBits)
	if err != nil {
		return 0, fmt.Errorf("%q is no whole number of 32 bits", text)
	}
	if o.HighestFirst {
		n = -n
	}
	return int(n), nil
}
