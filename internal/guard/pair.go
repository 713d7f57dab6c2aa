package guard

import (
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/merge"
)

// pair judges one path.
func (j *judge) pair(p effective.Pair) error {
	j.onPaths = true
	b := j.bind(p)
	again := b.none() && j.like.same(p)
	if !again {
		j.like = likeOf(p, j.like.lost[:0])
	}
	if j.like.changed {
		j.count(p)
	}
	if err := j.overrides(p, b, again); err != nil {
		return err
	}
	if !b.none() {
		j.like = like{lost: j.like.lost} // what is bound differs from path to path
		j.bound(p, b)
	}
	if p.After == nil || p.Again {
		return nil
	}
	if err := j.standing(p); err != nil {
		return err
	}
	for i := range p.After.Outcomes {
		o := &p.After.Outcomes[i]
		if j.policy != nil && o.Policy == &j.policy.Policy {
			j.ownPaths++
			j.ownLosses(p, i)
			j.unset(p, o)
			continue
		}
		j.otherLosses(p, i)
	}
	j.objectLosses(p)
	j.notes(p)
	return nil
}

// standing judges what is in force after the write, whoever brought it about.
func (j *judge) standing(p effective.Pair) error {
	j.weakened(p)
	j.hidden(p)
	if err := j.conforms(p); err != nil {
		return err
	}
	return j.requirements(p)
}

func (j *judge) count(p effective.Pair) {
	j.paths.add(&p, j.policyWritten())
	j.namespaces.add(p.Effective().Path.Namespace())
	j.blastOf(p).add(p, j.like.lostGroups, j.change.Object().Ref())
	if j.observe != nil {
		j.observe(p)
	}
}

// policyWritten reports whether it is a policy that is written: only effective
// policies of its own kind can change then.
func (j *judge) policyWritten() bool {
	_, ok := j.change.Object().(*policykind.Policy)
	return ok
}

// like is what holds of all pairs of the same effective policies: on a gateway
// without policies below, of every path.
type like struct {
	kind          *policykind.Kind
	before, after *merge.Result
	changed       bool
	lostGroups    []string
	lost          []*overrideTally // overrides, each once
	at            *gateway.Path    // after the write, nil where overrides on routes are lost
}

// lose adds an override that is lost at a level.
func (l *like) lose(t *overrideTally, at gateway.Level) {
	l.lost = append(l.lost, t)
	if at >= gateway.LevelRoute {
		l.at = nil
	}
}

// likeOf returns what a pair is like; room is for its losses.
func likeOf(p effective.Pair, room []*overrideTally) like {
	l := like{changed: p.Changed(), lost: room}
	if p.Before == nil || p.After == nil {
		return l
	}
	l.kind, l.before, l.after, l.at = p.After.Kind, p.Before.Result, p.After.Result, &p.After.Path
	if l.changed {
		l.lostGroups = lostGroups(p)
	}
	return l
}

// same reports whether another pair is of the same effective policies. What becomes of
// overrides depends on what the policies rest on, too.
func (l *like) same(p effective.Pair) bool {
	return l.kind != nil && p.Before != nil && p.After != nil &&
		p.After.Kind == l.kind && p.Before.Result == l.before && p.After.Result == l.after &&
		(len(l.lost) == 0 || l.at != nil && alike(l.at, &p.After.Path))
}
