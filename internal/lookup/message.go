package lookup

import (
	"context"
	"fmt"
	"maps"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
)

// message returns why named policies are on none of the paths, and, if there are no paths,
// why no policy applies to the other named objects; which of their parentRefs are not
// accepted, if some are; and which policies hold above them. It is empty if there is no such object,
// and for a request, which says by itself where it goes.
func (a *answering) message(ctx context.Context) (string, error) {
	if a.Asked != nil {
		return "", nil
	}
	policies := a.NamedPolicies()
	if len(policies) == 0 && len(a.paths) == 0 && len(a.Objects) > 0 {
		a.AddTargeting(policies)
	}
	maps.DeleteFunc(policies, func(policy *policykind.Policy, _ bool) bool {
		return a.policies[policy] || a.Hides != nil && a.Hides(policy.Ref())
	})
	outcomes, err := a.Outcomes(ctx, policies.Sorted())
	if err != nil {
		return "", err
	}
	var out []string
	for _, o := range outcomes {
		out = append(out, noEffectMessage(o, nil))
	}
	above, err := a.aboveRoutes(ctx)
	if err != nil {
		return "", err
	}
	none := len(out)+len(above) == 0 && len(a.paths) == 0
	for _, o := range a.Objects {
		if none {
			out = append(out, a.noPolicyMessage(o.Ref()))
		}
		if r, ok := o.(*gateway.Route); ok && a.Hides == nil && effective.Unattached(a.View, r.Ref()) == "" {
			out = append(out, rejections(a.View, r)...)
		}
	}
	return strings.Join(append(out, above...), "\n"), nil
}

// rejections returns which parentRefs of a route are not accepted, and what they probably mean.
func rejections(v *snapshot.View, r *gateway.Route) []string {
	var out []string
	for _, x := range effective.Rejections(v, r, r.Parents) {
		text := x.Text(r, "")
		if hint := effective.ParentHint(v, x.Parent, true); hint != "" && effective.MissingParent(v, x.Parent) != "" {
			text += "; " + hint
		}
		out = append(out, text)
	}
	return out
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
