package annotations

import (
	"context"
	"errors"
	"math"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/snapshot"
)

const (
	// maxConditions is the limit of a status of Gateway API, and reservedConditions
	// the number that stays free: a Gateway implementation that finds no room for its
	// own conditions cannot write its status.
	maxConditions      = 8
	reservedConditions = 2
	// reasonAffected is the reason of the condition.
	reasonAffected = "Affected"
)

// DesiredMarks are all marks that an object should have.
type DesiredMarks struct {
	// Annotations of routes and policies.
	Annotations map[string]string
	// Conditions of kinds that have conditions, sorted by type; their transition time
	// is not set.
	Conditions []metav1.Condition
	// LeftOut are condition types that exceed the limit.
	LeftOut []string
}

// Hash returns the hash of an object with these marks (snapshot.MarksHash).
func (d *DesiredMarks) Hash() uint64 { return snapshot.MarksHash(d.Annotations, d.Conditions) }

// desiredMarks computes the marks of an object in a view. The error is that of ctx.
func (c *Controller) desiredMarks(ctx context.Context, v *snapshot.View, o snapshot.Object, current snapshot.Marks) (*DesiredMarks, error) {
	if hasConditions(o.Ref().PolicyKind()) {
		return c.desiredConditions(ctx, v, o, current)
	}
	a := newAffected(o)
	b := effective.NewBudget(ctx, math.MaxUint64)
	text, err := Text(c.opts.Engine, v, o, b, func(e *effective.Effective) error {
		_ = a.add(e) // all paths must be visited
		return c.throttle.step(ctx)
	})
	if err != nil {
		return nil, err
	}
	marks := &DesiredMarks{Annotations: make(map[string]string)}
	if text != "" {
		marks.Annotations[Name(o)] = text
	}
	if c.opts.Affected {
		for _, kind := range a.kinds() {
			marks.Annotations[api.Affected(kind)] = "true"
		}
	}
	return marks, nil
}

func (c *Controller) desiredConditions(ctx context.Context, v *snapshot.View, o snapshot.Object, current snapshot.Marks) (*DesiredMarks, error) {
	marks := &DesiredMarks{}
	a := newAffected(o)
	if a.expected = len(policyCandidates(v, o)); !c.opts.Affected || a.expected == 0 {
		return marks, nil
	}
	b := effective.NewBudget(ctx, math.MaxUint64)
	err := c.opts.Engine.Walk(v, effective.ScopeOf(o), false, b, func(e *effective.Effective) error {
		if err := a.add(e); err != nil {
			return err
		}
		return c.throttle.step(ctx)
	})
	if err != nil && !errors.Is(err, errComplete) {
		return nil, err
	}
	room := max(0, maxConditions-reservedConditions-current.Others)
	for i, kind := range a.kinds() {
		if i >= room {
			marks.LeftOut = append(marks.LeftOut, api.Affected(kind))
			continue
		}
		marks.Conditions = append(marks.Conditions, metav1.Condition{
			Type: api.Affected(kind), Status: metav1.ConditionTrue, Reason: reasonAffected,
			Message: a.message(kind), ObservedGeneration: current.Generation,
		})
	}
	return marks, nil
}
