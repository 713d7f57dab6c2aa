package guard

import (
	"errors"
	"fmt"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/policykind"
)

// tooMuchFinding tells what of a write, or around it, was too much, and what to
// do about that.
func tooMuchFinding(c Change, e *effective.TooMuchError, whole error) Finding {
	f := Finding{
		Code: api.ReasonTooMuch, Action: api.Deny,
		What:   fmt.Sprintf("%s: %v", subject(c), e),
		Advice: "change less in one write, or ask the cluster's administrator",
	}
	own := c.Object().Ref()
	asking, _ := errors.AsType[*askingError](whole)
	switch {
	case e.Costliest == own && own.Name != "":
		f.Advice = "simplify its conditions, or give it fewer targets"
	case e.Costliest != (api.Ref{}):
		f.Policy = &e.Costliest
		f.Advice = fmt.Sprintf("ask the owner of %s for simpler conditions", e.Costliest.Key())
	case e.Limit > 0 && asking != nil:
		f.Policy = &asking.constraint
		f.Advice = fmt.Sprintf("the last one asked was %s: ask its owner for a simpler one", asking.constraint)
	case size(c) > large:
		f.Advice = fmt.Sprintf("it has %s: put fewer into one policy, or give it fewer targets", plural(size(c), "rule"))
	}
	return f
}

// askingError is that of asking a constraint.
type askingError struct {
	constraint api.Ref
	err        error
}

func (e *askingError) Error() string { return fmt.Sprintf("ask %s: %v", e.constraint, e.err) }

func (e *askingError) Unwrap() error { return e.err }

// large is how many rules of a policy are worth a word.
const large = 200

// size counts the rules of the policy that is written.
func size(c Change) int {
	p, ok := c.Object().(*policykind.Policy)
	if !ok {
		return 0
	}
	n := 0
	for _, b := range p.Blocks {
		n += len(b.Rules)
	}
	return n
}
