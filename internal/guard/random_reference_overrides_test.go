package guard_test

import (
	"maps"
	"slices"
)

// plainOverride is a rule of an overrides block of a policy on a path.
type plainOverride struct {
	plainLayer
	plainBlock
	rule  string
	value int
}

// blocks are those of a layer in their order.
func (l plainLayer) blocks() []plainBlock { return []plainBlock{l.Defaults, l.Bare, l.Overrides} }

// overrides are the overrides of a layer.
func (l plainLayer) overrides() []plainOverride {
	var out []plainOverride
	for _, rule := range slices.Sorted(maps.Keys(l.Overrides.Rules)) {
		out = append(out, plainOverride{l, l.Overrides, rule, l.Overrides.Rules[rule]})
	}
	return out
}

// wasInForce is a rule of the effective policy: who set it last, in which block.
type wasInForce struct {
	policy   plainName
	override bool
	value    int
}

func met(when string, e map[string]wasInForce) bool {
	k, l := e["k"], e["l"]
	_, m := e["m"]
	switch when {
	case "spec.k > 1":
		return k.value > 1
	case "spec.l == 2":
		return l.value == 2
	case "has(spec.m)":
		return m
	default:
		return true
	}
}

// fold is section 3 of the semantics.
func (w plainWorld) fold(p plainPath) map[string]wasInForce {
	e := make(map[string]wasInForce)
	for _, l := range slices.Backward(w.layers(p)) {
		for i, b := range l.blocks() {
			isOverride := i == 2
			if len(b.Rules) == 0 || !met(b.When, e) {
				continue
			}
			switch {
			case isOverride && b.Atomic:
				e = make(map[string]wasInForce)
			case !isOverride && b.Atomic && len(e) > 0:
				continue
			}
			for key, value := range b.Rules {
				if _, has := e[key]; isOverride || !has {
					e[key] = wasInForce{l.key(), isOverride, value}
				}
			}
		}
	}
	return e
}

// held are the overrides that hold on a path: those in force, and those under a
// condition unless a higher one without has their place.
func (w plainWorld) held(p plainPath) []plainOverride {
	var out []plainOverride
	e := w.fold(p)
	layers := w.layers(p)
	for i, l := range layers {
		for _, o := range l.overrides() {
			now := e[o.rule]
			holds := now.override && now.policy == l.key()
			if o.When != "" {
				holds = !slices.ContainsFunc(layers[:i], func(h plainLayer) bool { return h.key() != l.key() && h.takesPlace(o.rule) })
			}
			if holds {
				out = append(out, o)
			}
		}
	}
	return out
}

// takesPlace reports whether a policy has an override of a rule without a
// condition, or one that leaves no other.
func (l plainLayer) takesPlace(key string) bool {
	return slices.ContainsFunc(l.overrides(), func(o plainOverride) bool { return o.When == "" && (o.Atomic || o.rule == key) })
}

// given reports whether an override is given on a path, as high as it was: by its
// own policy, or by another one of its namespace that is not beaten by what is not above the lost
// one.
func (w plainWorld) given(o plainOverride, p plainPath) bool {
	for _, l := range w.layers(p) {
		own := l.key() == o.key()
		for _, q := range l.overrides() {
			same := q.rule == o.rule && q.value == o.value && (q.When == "" || q.When == o.When) && (q.Atomic || !o.Atomic)
			if same && l.level <= o.level && (own || l.Namespace == o.Namespace && w.stands(q, o.level, p)) {
				return true
			}
		}
	}
	return false
}

// stands reports whether an override has a part in what is in force, or is
// beaten by one above a level.
func (w plainWorld) stands(q plainOverride, level int, p plainPath) bool {
	if q.When != "" {
		return slices.ContainsFunc(w.held(p), func(o plainOverride) bool {
			return o.key() == q.key() && o.rule == q.rule
		})
	}
	now, ok := w.fold(p)[q.rule]
	if !ok || !now.override {
		return false
	}
	by := slices.IndexFunc(w.layers(p), func(l plainLayer) bool { return l.key() == now.policy })
	return now.value == q.value || w.layers(p)[by].level < level
}
