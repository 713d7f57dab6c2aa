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
	// mostConditions is how many a status of Gateway API takes, and reserved how
	// many places are left free there: an implementation that finds no room for its
	// own cannot write its status at all.
	maxConditions      = 8
	reservedConditions = 2
	// reasonAffected is the reason of the condition.
	reasonAffected = "Affected"
)

// DesiredMarks are the marks that an object is to have, and no others.
type DesiredMarks struct {
	// Annotations of routes and policies.
	Annotations map[string]string
	// Conditions of those that have conditions, by type; their time is not set.
	Conditions []metav1.Condition
	// LeftOut are types for which there is no room.
	LeftOut []string
}

// Hash returns the hash of an object that has the marks (store.MarksHash).
func (w *DesiredMarks) Hash() uint64 { return snapshot.MarksHash(w.Annotations, w.Conditions) }

// wanted computes the marks of an object as the view has it. The error is that of
// ctx.
func (r *Controller) desiredMarks(ctx context.Context, v *snapshot.View, o snapshot.Object, has snapshot.Marks) (*DesiredMarks, error) {
	if hasConditions(o.Ref().PolicyKind()) {
		return r.desiredConditions(ctx, v, o, has)
	}
	a := newAffected(o)
	b := effective.NewBudget(ctx, math.MaxUint64)
	text, err := Text(r.Engine, v, o, b, func(e *effective.Effective) error {
		_ = a.add(e) // all paths are looked at
		return r.throttle.step(ctx)
	})
	if err != nil {
		return nil, err
	}
	w := &DesiredMarks{Annotations: make(map[string]string)}
	if text != "" {
		w.Annotations[Name(o)] = text
	}
	if r.Affected {
		for _, kind := range a.kinds() {
			w.Annotations[api.Affected(kind)] = "true"
		}
	}
	return w, nil
}

func (r *Controller) desiredConditions(ctx context.Context, v *snapshot.View, o snapshot.Object, has snapshot.Marks) (*DesiredMarks, error) {
	w := &DesiredMarks{}
	a := newAffected(o)
	if a.expected = len(policyCandidates(v, o)); !r.Affected || a.expected == 0 {
		return w, nil
	}
	b := effective.NewBudget(ctx, math.MaxUint64)
	err := r.Engine.Walk(v, effective.ScopeOf(o), false, b, func(e *effective.Effective) error {
		if err := a.add(e); err != nil {
			return err
		}
		return r.throttle.step(ctx)
	})
	if err != nil && !errors.Is(err, errComplete) {
		return nil, err
	}
	room := max(0, maxConditions-reservedConditions-has.Others)
	for i, kind := range a.kinds() {
		if i >= room {
			w.LeftOut = append(w.LeftOut, api.Affected(kind))
			continue
		}
		w.Conditions = append(w.Conditions, metav1.Condition{
			Type: api.Affected(kind), Status: metav1.ConditionTrue, Reason: reasonAffected,
			Message: a.message(kind), ObservedGeneration: has.Generation,
		})
	}
	return w, nil
}
