package guard

import (
	"context"

	"overrule.dev/overrule/internal/effective"
)

// requirements judges the constraints on a path.
func (j *judge) requirements(effective.Pair) error { return nil }

// unmet turns the constraints that are violated into findings.
func (j *judge) unmet() {}

// constraint judges the write of a constraint: j.change.Object() is one.
func (j *judge) constraint(context.Context) error { return nil }
