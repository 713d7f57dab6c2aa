package guard

import (
	"sync"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cel"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
)

// sides are what constraints read of a path, before and after the write.
type sides struct {
	before, after *moment
	pair          effective.Pair
	moved         func() bool
}

// moment is one of them: a path at one moment, with all that is known of it.
type moment struct {
	*cel.Variables
	on *effective.Effective
	// previous is what the variable before is of, nil for none.
	previous *effective.Effective
	// handedOver are the rules whose place another policy has after the write; nil
	// where that is no question.
	handedOver func() map[merge.Key]bool
}

// sides makes the variables of a path; nothing of them before it is asked for.
// Before the write, nothing has changed: what was there before that is the same.
// So it is where no write is judged.
func (j *judge) sides(p effective.Pair) *sides {
	s := &sides{pair: p, after: j.moment(p.After, p.Before, j.after)}
	if p.Before != nil {
		s.before = j.moment(p.Before, p.Before, j.before)
		s.before.handedOver = sync.OnceValue(func() map[merge.Key]bool { return j.handedOver(p) })
	}
	if j.change.Object() == nil {
		s.after = j.moment(p.After, p.After, j.after)
	}
	s.moved = sync.OnceValue(func() bool { return !merge.Equal(s.before.Path(), s.after.Path()) })
	return s
}

// handedOver returns the rules before the write whose place another policy has after
// it, or that are gone from another policy than the one that is written. How far what is
// there now is from their values is not compared: its author could find these out.
func (j *judge) handedOver(p effective.Pair) map[merge.Key]bool {
	out := make(map[merge.Key]bool)
	if p.Before.Result == p.After.Result {
		return out
	}
	written := j.writtenRef()
	for i := range p.Before.Rules {
		r := &p.Before.Rules[i]
		heir := written
		if now := p.After.At(r.Key); now != nil {
			heir = p.After.Ref(now.From.Policy)
		}
		if p.Before.Ref(r.From.Policy) != heir {
			out[r.Key] = true
		}
	}
	return out
}

// isComparable reports whether all of the moment may be compared with another one.
func (m *moment) isComparable() bool { return m.handedOver == nil || len(m.handedOver()) == 0 }

// same reports whether a constraint cannot say anything new.
func (s *sides) same(c *constraint.Constraint) bool {
	return s.pair.Before.Result == s.pair.After.Result && s.pair.Before.Kind == s.pair.After.Kind &&
		(!c.Reads("path") || !s.moved())
}

func (j *judge) moment(e, previous *effective.Effective, v *snapshot.View) *moment {
	m := &moment{on: e, previous: previous, Variables: &cel.Variables{
		Effective: sync.OnceValue(e.Spec),
		Origins:   sync.OnceValue(func() any { return origins(e) }),
		Path:      sync.OnceValue(func() any { return constraint.PathOf(&e.Path, v) }),
		Request:   func() any { return j.request() },
	}}
	if previous != nil {
		m.Before = sync.OnceValue(previous.Spec)
	}
	return m
}

// hides reports whether the value of a rule on a path stays hidden.
type hides func(*effective.Effective, *merge.Effective) bool

// hiding returns the variables with cel.Opaque for values that stay hidden.
func (m *moment) hiding(hide hides) *cel.Variables {
	if !hidesAny(m.on, hide) && (m.previous == nil || !hidesAny(m.previous, hide)) {
		return m.Variables
	}
	out := *m.Variables
	out.Effective = sync.OnceValue(func() any { return specHiding(m.on, hide) })
	if m.previous != nil {
		out.Before = sync.OnceValue(func() any { return specHiding(m.previous, hide) })
	}
	return &out
}

func hidesAny(e *effective.Effective, hide hides) bool {
	for i := range e.Rules {
		if hide(e, &e.Rules[i]) {
			return true
		}
	}
	return false
}

func specHiding(e *effective.Effective, hide hides) any {
	return e.SpecHiding(func(r *merge.Effective) bool { return hide(e, r) }, cel.Opaque)
}

// sight returns what a constraint that stands at a level reads of a path.
func (j *judge) sight(c *constraint.Constraint, level constraint.Level, m *moment) constraint.PathInput {
	out := constraint.PathInput{Judged: m.Variables, Shown: func() *cel.Variables { return j.readable(m) }}
	namespace, written := c.Ref().Namespace, j.writtenRef()
	if namespace == "" && m.isComparable() {
		return out
	}
	out.Judged = m.hiding(func(e *effective.Effective, r *merge.Effective) bool {
		if !m.isComparable() && m.handedOver()[r.Key] {
			return true
		}
		p := attachedPolicy{namespace, level, e, e.Ref(r.From.Policy)}
		return namespace != "" && !p.open() && (p.policy != written || !p.bound())
	})
	return out
}

// readable returns the variables with the values of the object that is written alone,
// or all where their reader may read them.
func (j *judge) readable(m *moment) *cel.Variables {
	if j.ShowValues {
		return m.Variables
	}
	written := j.writtenRef()
	return m.hiding(func(e *effective.Effective, r *merge.Effective) bool { return e.Ref(r.From.Policy) != written })
}

// writtenRef names the object that is written, none where no write is judged.
func (j *judge) writtenRef() api.Ref {
	if o := j.change.Object(); o != nil {
		return o.Ref()
	}
	return api.Ref{}
}

// origins returns where the rules of an effective policy come from, by key.
func origins(e *effective.Effective) map[string]any {
	out := make(map[string]any, len(e.Rules))
	for _, r := range e.Rules {
		from := constraint.RefOf(e.Ref(r.From.Policy))
		from["block"] = r.From.Block.String()
		out[r.Key.String()] = from
	}
	return out
}

// request returns who writes what. Where no write is judged, it is nothing, and
// by nobody.
func (j *judge) request() map[string]any {
	var object api.Ref
	if o := j.change.Object(); o != nil {
		object = o.Ref()
	}
	user := map[string]any{"username": "", "uid": "", "groups": []any{}, "extra": map[string]any{}}
	if u := j.change.User; u != nil {
		extra := make(map[string]any, len(u.Extra))
		for k, v := range u.Extra {
			extra[k] = decodedList(v)
		}
		user = map[string]any{"username": u.Username, "uid": u.UID, "groups": decodedList(u.Groups), "extra": extra}
	}
	return map[string]any{"operation": string(j.change.Operation), "object": constraint.RefOf(object), "userInfo": user}
}

func decodedList(texts []string) []any {
	out := make([]any, len(texts))
	for i, text := range texts {
		out[i] = text
	}
	return out
}
