package guard

import (
	"sync"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cel"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/store"
	"overrule.dev/overrule/merge"
)

// sides are what constraints read of a path, before and after the write.
type sides struct {
	before, after *cel.Variables
	pair          effective.Pair
	moved         func() bool
}

// sides makes the variables of a path; nothing of them before it is asked for.
// Before the write, nothing has changed: what was there before that is the same.
// So it is where no write is judged.
func (j *judge) sides(p effective.Pair) *sides {
	s := &sides{pair: p, after: j.variables(p.After, j.after)}
	if p.Before != nil {
		s.before = j.variables(p.Before, j.before)
		s.before.Before = s.before.Effective
		s.after.Before = s.before.Effective
	}
	if j.change.Object() == nil {
		s.after.Before = s.after.Effective
	}
	s.moved = sync.OnceValue(func() bool { return !merge.Equal(s.before.Path(), s.after.Path()) })
	return s
}

// same reports whether a constraint cannot say anything new.
func (s *sides) same(c *constraint.Constraint) bool {
	return s.pair.Before.Result == s.pair.After.Result && s.pair.Before.Kind == s.pair.After.Kind &&
		(!c.Reads("path") || !s.moved())
}

func (j *judge) variables(e *effective.Effective, v *store.View) *cel.Variables {
	return &cel.Variables{
		Effective: sync.OnceValue(e.Spec),
		Origins:   sync.OnceValue(func() any { return origins(e) }),
		Path:      sync.OnceValue(func() any { return constraint.PathOf(&e.Path, v) }),
		Request:   func() any { return j.request() },
	}
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
