package guard

import (
	"fmt"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/policykind"
)

// checkProfile checks the write of a PolicyProfile: whether it is valid, whether another
// one defines its kind, and whether its addresses exist in the schema.
func (ev *evaluation) checkProfile(p *policykind.Profile) error {
	kind, err := p.Compile()
	if err != nil {
		var wasInvalid error
		if was, ok := ev.change.Before.(*policykind.Profile); ok {
			_, wasInvalid = was.Compile()
		}
		ev.report(api.ReasonInvalid, newly(wasInvalid != nil), Finding{What: fmt.Sprintf("%s is invalid: %s", p.Ref(), strings.ReplaceAll(err.Error(), "\n", "; "))})
		return nil
	}
	for _, other := range ev.before.KindConfig().InForce() {
		if other.PolicyKind == kind.Ref() && other.Profile != "" && other.Profile != p.Name && !isOlder(ev.change, other) {
			ev.warn(api.ReasonConflicted, Finding{Advice: "delete one of the two"},
				"%s has no effect: PolicyProfile %s, which is older, is in force for %s", p.Ref(), other.Profile, kind.Ref())
		}
	}
	schema, err := ev.before.KindConfig().Schema(kind.Ref())
	if err != nil {
		return err
	}
	for _, lost := range kind.Check(schema) {
		ev.warn(api.ReasonNotRead, Finding{Advice: "fix the address or the kind's definition"}, "%s", lost)
	}
	return nil
}

// isOlder reports whether the profile that is written existed before the one that defines
// its kind: it is then in force, or was refused.
func isOlder(c Change, holder api.ProfileInForce) bool {
	if c.Before == nil {
		return false
	}
	for _, r := range holder.Refused {
		if r.Name == c.Before.Ref().Name {
			return r.Reason != api.Conflicted // fixed, it may be the older one
		}
	}
	return true
}
