package policykind

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	"overrule.dev/overrule/merge"
)

// WaypointPart is the part of a policy at waypoints, in kinds with directions.
const WaypointPart = 1

// directions reads the block of bare rules: for gateways, and as WaypointPart for waypoints.
func (r *reader) directions(at *field.Path, content map[string]any, block merge.Block, s blockStrategy) {
	d, p := r.kind.Directions, r.policy
	if d == nil {
		r.block(at, content, block, s)
		return
	}
	r.block(at, r.kind.directed(content, d.Waypoint), block, s)
	p.Parts = [][]merge.Rules{p.Blocks}
	p.Blocks, p.fields.blocks = nil, nil
	r.block(at, r.kind.directed(content, d.Gateway), block, s)
}

// directed returns a copy of the content without the items for another direction.
func (k *Kind) directed(content map[string]any, direction string) map[string]any {
	out := content
	for _, list := range k.directedLists {
		out, _ = k.withoutOther(out, list, direction).(map[string]any)
	}
	return out
}

// withoutOther returns a copy of a value without the items at a path that are for another
// direction, nil if no item is left.
func (k *Kind) withoutOther(value any, list fieldPath, direction string) any {
	switch v := value.(type) {
	case map[string]any:
		if len(list) == 0 || v[list[0]] == nil {
			return value
		}
		out := list[:1].without(v)
		if left := k.withoutOther(v[list[0]], list[1:], direction); left != nil {
			if len(out) == len(v) {
				return value
			}
			out[list[0]] = left
		}
		return out
	case []any:
		var out []any
		for _, item := range v {
			switch {
			case len(list) > 0: // * stands for each item
				out = append(out, k.withoutOther(item, list[1:], direction))
			case k.isFor(item, direction):
				out = append(out, k.withoutDirection(item))
			}
		}
		if len(out) == 0 && len(v) > 0 {
			return nil
		}
		return out
	default:
		return value
	}
}

func (k *Kind) isFor(item any, direction string) bool {
	value, _ := k.direction.lookup(item)
	return value == direction || value != k.Directions.Gateway && value != k.Directions.Waypoint
}

func (k *Kind) withoutDirection(item any) any {
	if fields, ok := item.(map[string]any); ok {
		return k.direction.without(fields)
	}
	return item
}
