package policykind

import (
	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/merge"
)

// GroupName returns the name of the first n segments of a rule key for readers: the name
// of a group of named rules alone, such as authentication for rules.authentication, else
// the key.
func (k *Kind) GroupName(rule merge.Key, n int) string {
	key, _ := rule.Ancestor(n)
	if k.SameTarget == api.Collect {
		return "rules" // a rule is a whole policy
	}
	segments := key.Segments()
	if g := k.group(rule); g != nil && g.own && key == rule && len(segments) > 1 { // its last segment names its policy
		key, _ = rule.Ancestor(len(segments) - 1)
		segments = key.Segments()
	}
	for _, p := range k.rules {
		if len(p) > len(segments) && p[len(segments)] == "*" && p.fixed(segments) == len(segments) {
			return segments[len(segments)-1]
		}
	}
	return key.String()
}

// GroupDepth returns the number of segments of the shortest name that says what a rule is
// about: those of its group of named rules, or of a top-level field.
func (k *Kind) GroupDepth(rule merge.Key) int {
	segments, depth := rule.Segments(), 1
	for _, p := range k.rules {
		n := p.fixed(segments)
		if n < len(p) && p[n] != "*" {
			n++ // it branches off here
		}
		depth = max(depth, min(n, len(segments)))
	}
	return depth
}

// fixed returns how many segments are those of the path, up to its first *.
func (p fieldPath) fixed(segments []string) int {
	n := 0
	for n < len(p) && n < len(segments) && p[n] == segments[n] {
		n++
	}
	return n
}
