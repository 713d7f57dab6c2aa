package guard

import (
	"slices"
	"sync"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/cel"
	"overrule.dev/overrule/internal/constraint"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
)

// constraintInputs is what constraints read of a path, before and after the write.
type constraintInputs struct {
	before, after *pathState
	pair          effective.Pair
	moved         func() bool
	former        func() (formerPaths, error)
}

// pathState is a path at one time, with the variables that constraints read.
type pathState struct {
	variables *cel.Variables
	on        *effective.Effective
	// previous is what the variable before is of, nil for none.
	previous *effective.Effective
	// replacedRules are the rules whose place another policy has after the write; nil
	// where none can be.
	replacedRules func() map[merge.Key]bool
}

// inputs returns the variables of a path; none is computed before it is read. Before the
// write, nothing has changed: the variable before has the same value. So it is in an
// audit.
func (ev *requirements) inputs(p effective.Pair) *constraintInputs {
	s := &constraintInputs{pair: p, after: ev.newPathState(p.After, p.Before, ev.after)}
	if p.Before != nil {
		s.before = ev.newPathState(p.Before, p.Before, ev.before)
		s.before.replacedRules = sync.OnceValue(func() map[merge.Key]bool { return ev.replacedRules(p) })
	}
	if ev.change.Object() == nil {
		s.after = ev.newPathState(p.After, p.After, ev.after)
	}
	s.former = sync.OnceValues(func() (formerPaths, error) { return ev.formerPathsOf(p) })
	s.moved = sync.OnceValue(func() bool { return !merge.Equal(s.before.variables.Path(), s.after.variables.Path()) })
	return s
}

// replacedRules returns the rules before the write whose place another policy has after
// it, or that are removed from another policy than the one that is written. The new values
// are not compared with theirs: the author could find these out.
func (ev *requirements) replacedRules(p effective.Pair) map[merge.Key]bool {
	out := make(map[merge.Key]bool)
	if p.Before.Result == p.After.Result {
		return out
	}
	written := ev.writtenRef()
	for i := range p.Before.Rules {
		r := &p.Before.Rules[i]
		successor := written
		if now := p.After.At(r.Key); now != nil {
			successor = p.After.Ref(now.From.Policy)
		}
		if p.Before.Ref(r.From.Policy) != successor {
			out[r.Key] = true
		}
	}
	return out
}

// isComparable reports whether all of the state may be compared with another one.
func (p *pathState) isComparable() bool { return p.replacedRules == nil || len(p.replacedRules()) == 0 }

// same reports whether a constraint cannot have another result.
func (in *constraintInputs) same(c *constraint.Constraint) bool {
	return in.pair.Before.Result == in.pair.After.Result && in.pair.Before.Kind == in.pair.After.Kind &&
		(!c.Reads("path") || !in.moved())
}

func (ev *requirements) newPathState(e, previous *effective.Effective, v *snapshot.View) *pathState {
	m := &pathState{on: e, previous: previous, variables: &cel.Variables{
		Effective: sync.OnceValue(e.Spec),
		Origins:   sync.OnceValue(func() any { return origins(e) }),
		Path:      sync.OnceValue(func() any { return constraint.PathOf(&e.Path, v) }),
		Request:   func() any { return ev.request() },
	}}
	if previous != nil {
		m.variables.Before = sync.OnceValue(previous.Spec)
	}
	return m
}

// hideFunc reports whether the value of a rule on a path stays hidden.
type hideFunc func(*effective.Effective, *merge.Effective) bool

// redacted returns the variables with cel.Opaque for values that stay hidden.
func (p *pathState) redacted(hide hideFunc) *cel.Variables {
	hidden := func(e *effective.Effective) bool {
		return e != nil && slices.ContainsFunc(e.Rules, func(r merge.Effective) bool { return hide(e, &r) })
	}
	if !hidden(p.on) && !hidden(p.previous) {
		return p.variables
	}
	spec := func(e *effective.Effective) func() any {
		return sync.OnceValue(func() any {
			return e.SpecHiding(func(r *merge.Effective) bool { return hide(e, r) }, cel.Opaque)
		})
	}
	out := *p.variables
	if out.Effective = spec(p.on); p.previous != nil {
		out.Before = spec(p.previous)
	}
	return &out
}

// inputFor returns what a constraint that applies at a level reads of a path.
func (ev *requirements) inputFor(c *constraint.Constraint, level constraint.Level, m *pathState) constraint.PathInput {
	out := constraint.PathInput{Variables: m.variables, Shown: func() *cel.Variables { return ev.readableVariables(m) }}
	namespace, written := c.Ref().Namespace, ev.writtenRef()
	if namespace == "" && m.isComparable() {
		return out
	}
	out.Variables = m.redacted(func(e *effective.Effective, r *merge.Effective) bool {
		if !m.isComparable() && m.replacedRules()[r.Key] {
			return true
		}
		p := attachedPolicy{namespace, level, e, e.Ref(r.From.Policy)}
		return namespace != "" && !p.open() && (p.policy != written || !p.bound())
	})
	return out
}

// readableVariables returns the variables with the values of the object that is written
// alone, or all where their reader is allowed to read them.
func (ev *requirements) readableVariables(m *pathState) *cel.Variables {
	if ev.guard.ReadsAll {
		return m.variables
	}
	written := ev.writtenRef()
	return m.redacted(func(e *effective.Effective, r *merge.Effective) bool { return e.Ref(r.From.Policy) != written })
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

// request returns who writes what. It is empty in an audit.
func (ev *requirements) request() map[string]any {
	user := map[string]any{"username": "", "uid": "", "groups": []any{}, "extra": map[string]any{}}
	if u := ev.change.User; u != nil {
		extra := make(map[string]any, len(u.Extra))
		for k, v := range u.Extra {
			extra[k] = decodedList(v)
		}
		user = map[string]any{"username": u.Username, "uid": u.UID, "groups": decodedList(u.Groups), "extra": extra}
	}
	return map[string]any{"operation": string(ev.change.Operation), "object": constraint.RefOf(ev.writtenRef()), "userInfo": user}
}

func decodedList(texts []string) []any {
	out := make([]any, len(texts))
	for i, text := range texts {
		out[i] = text
	}
	return out
}

// attachedPolicy is a policy on a path, seen from a PolicyConstraint of a namespace at a
// level of it.
type attachedPolicy struct {
	namespace string
	level     constraint.Level
	on        *effective.Effective
	policy    api.Ref
}

// open reports whether the constraint reads the values of the policy: those of its own
// namespace, and those that the owner of an object below the constraint gives that
// object, which the owner placed there. Whatever else other namespaces attach is
// opaque, though it is attached to an object of the constraint's own namespace: users
// could attach it themselves, by a label, a ReferenceGrant or a backendRef, to read it.
func (a *attachedPolicy) open() bool {
	return a.policy.Namespace == a.namespace || a.attachments(func(l gateway.Level) bool {
		return l > a.level && namespaceAt(&a.on.Path, l) == a.policy.Namespace && !foreignBackend(&a.on.Path, l)
	}, true)
}

// bound reports whether the constraint binds writes of the policy: those of its own
// namespace at its level and below. One of another namespace it binds there, too, but
// not where it is attached to a backend of a third one, or by a ReferenceGrant of the
// constraint's namespace: else that namespace could close it to its owner.
func (a *attachedPolicy) bound() bool {
	own := a.policy.Namespace == a.namespace
	return a.attachments(func(l gateway.Level) bool {
		return l >= a.level && (own || !foreignBackend(&a.on.Path, l) && !a.granted(l))
	}, false)
}

// granted reports whether the constraint's namespace let the policy in at a level.
func (a *attachedPolicy) granted(l gateway.Level) bool {
	return a.on.Kind.Targets.Namespaces == api.NamespacesReferenceGrant && namespaceAt(&a.on.Path, l) == a.namespace
}

// attachments reports whether all levels at which the policy is attached are so, or
// one of them.
func (a *attachedPolicy) attachments(is func(gateway.Level) bool, all bool) bool {
	if a.on == nil {
		return all
	}
	for _, l := range a.on.Layers {
		if a.on.Ref(l.Policy) == a.policy && is(gateway.Level(l.Level)) != all {
			return !all
		}
	}
	return all
}

// namespaceAt returns the namespace of the object at a level of a path.
func namespaceAt(p *gateway.Path, l gateway.Level) string {
	e := p.Element(l)
	if e.Kind == gateway.KindNamespace {
		return e.Name
	}
	return e.Namespace
}

// foreignBackend reports whether the object at a level is a backend of another
// namespace than its route.
func foreignBackend(p *gateway.Path, l gateway.Level) bool {
	return (l == gateway.LevelBackend || l == gateway.LevelBackendPort) && p.Route != nil && namespaceAt(p, l) != p.Route.Namespace
}
