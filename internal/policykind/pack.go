package policykind

import (
	"slices"
	"unique"

	"overrule.dev/overrule/internal/decode"
	"overrule.dev/overrule/merge"
)

// packed is a map or list as JSON with sorted names. A Go map takes 336 bytes for one
// field as for eight, and policies are many small maps.
type packed string

// Unpack implements merge.Packed.
func (p packed) Unpack() any {
	v, _ := decode.Value([]byte(p)) // it was written by packValue
	return v
}

// Size returns the length of the value as JSON.
func (p packed) Size() int { return len(p) }

// MarshalJSON returns the JSON of the value.
func (p packed) MarshalJSON() ([]byte, error) { return []byte(p), nil }

// Pack returns a copy of the policy that takes less memory: the values of its rules
// are packed, and strings that policies have in common are shared. The copy has the
// same content, and a version of its own. One that is packed is returned as it is.
func (p *Policy) Pack() *Policy {
	if p.packed {
		return p
	}
	out := *p
	out.packed = true
	out.Version = NextVersion() // memo entries of a version point to its policy
	out.Blocks, out.Parts = packBlocks(p.Blocks), make([][]merge.Rules, len(p.Parts))
	for i, blocks := range p.Parts {
		out.Parts[i] = packBlocks(blocks)
	}
	out.fields.blocks = make([]string, len(p.fields.blocks))
	for i, at := range p.fields.blocks {
		out.fields.blocks[i] = unique.Make(at).Value()
	}
	out.Targets = make([]Target, len(p.Targets))
	for i, t := range p.Targets {
		t.Ref.Group, t.Ref.Kind = unique.Make(t.Ref.Group).Value(), unique.Make(t.Ref.Kind).Value()
		t.Ref.Namespace = unique.Make(t.Ref.Namespace).Value()
		out.Targets[i] = t
	}
	out.Namespace = unique.Make(p.Namespace).Value()
	return &out
}

func packBlocks(blocks []merge.Rules) []merge.Rules {
	out := make([]merge.Rules, len(blocks))
	for i, b := range blocks {
		rules := make([]merge.Rule, len(b.Rules))
		for j, r := range b.Rules {
			r.Key = unique.Make(r.Key).Value()
			if !r.EmptyMap {
				r.Value = packValue(r.Value)
			}
			rules[j] = r
		}
		b.Rules = rules
		out[i] = b
	}
	return out
}

// packValue packs a map or list, unless it has a float64: one without a fraction
// would be decoded as int64.
func packValue(value any) any {
	switch value.(type) {
	case map[string]any, []any:
	default:
		return value
	}
	if hasFloat(value) {
		return value
	}
	data, err := decode.Encode(value, "")
	if err != nil {
		return value
	}
	return packed(data)
}

// hasFloat reports whether a value contains a float64.
func hasFloat(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, child := range v {
			if hasFloat(child) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasFloat)
	case float64:
		return true
	}
	return false
}
