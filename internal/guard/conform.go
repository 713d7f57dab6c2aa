package guard

import "overrule.dev/overrule/internal/effective"

// conforms checks the effective spec of a path against its schema.
func (j *judge) conforms(effective.Pair) error { return nil }

// invalid turns what breaks its schema into findings.
func (j *judge) invalid() {}
