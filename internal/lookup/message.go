package lookup

import (
	"context"
	"fmt"
	"maps"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/policykind"
)

// Message returns why named policies are on none of the paths, and, if there are no paths,
// why no policy applies to the other named objects. It is empty if there is no such object,
// and for a request, which says by itself where it goes.
func (p *Paths) Message(ctx context.Context) (string, error) {
	q := p.query
	if q.Request != nil {
		return "", nil
	}
	policies := q.NamedPolicies()
	if len(policies) == 0 && p.Len() == 0 && len(q.Objects) > 0 {
		q.AddTargeting(policies)
	}
	maps.DeleteFunc(policies, func(policy *policykind.Policy, _ bool) bool {
		return p.Policies[policy] || q.Hides != nil && q.Hides(policy.Ref())
	})
	outcomes, err := q.Outcomes(ctx, policies.Sorted())
	if err != nil {
		return "", err
	}
	var out []string
	for _, o := range outcomes {
		out = append(out, noEffectMessage(o, nil))
	}
	if len(out) == 0 && p.Len() == 0 {
		for _, o := range q.Objects {
			out = append(out, q.noPolicyMessage(o.Ref()))
		}
	}
	return strings.Join(out, "\n"), nil
}

// noPolicyMessage returns why no policy applies to an object that no policy targets.
func (q *Query) noPolicyMessage(object api.Ref) string {
	kinds := "policy"
	if len(q.Kinds) > 0 {
		names := make([]string, len(q.Kinds))
		for i, k := range q.Kinds {
			names[i] = k.Kind
		}
		kinds = strings.Join(names, " or ")
	}
	text := fmt.Sprintf("no %s applies to %s", kinds, object)
	if why := effective.Unattached(q.View, object); why != "" {
		if q.Hides != nil { // the reason names objects that the reader may not be allowed to get
			return text
		}
		return text + ": " + why
	}
	return fmt.Sprintf("%s: none targets it or another object on its paths%s", text, q.routesHint())
}
