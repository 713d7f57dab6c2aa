package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/internal/effective"
	"overrule.dev/overrule/internal/gateway"
	"overrule.dev/overrule/internal/policykind"
	"overrule.dev/overrule/internal/snapshot"
	"overrule.dev/overrule/merge"
)

// reachFlags are the flags of the reach command.
type reachFlags struct {
	queryFlags
	affecting bool
	section   string
}

func (a *app) reachCommand() *cobra.Command {
	var flags reachFlags
	cmd := &cobra.Command{
		Use:   "reach KIND/NAME [RULE]",
		Short: "Show where a policy has an effect, or which policies affect an object",
		Long: `Show where a policy has an effect: the gateways, listeners, services, routes and
backends on whose paths a rule of it is in effect. RULE limits the output to one rule
by its key, to the rules under a prefix of keys, or to the rules of a name.

With --affecting, KIND/NAME is an object: a Gateway, a ListenerSet, a route, a Service
or other backend; --section names a listener, a rule or a port of it. The output lists
the policies of which a rule is in effect on a path through the object, and where on
these paths it is. Values that the route itself sets are not listed.

The exit code is 0 even if the policy has no effect anywhere.`,
		Example: `  # Show where a policy has an effect
  kubectl overrule reach -n infra authpolicy/gw-auth

  # Show where one rule of a policy has an effect
  kubectl overrule reach -n infra authpolicy/gw-auth rules.authentication.sso

  # Show the policies that affect a rule of a route
  kubectl overrule reach -n app --affecting httproute/toystore --section toys`,
		Args: withUsage(objectArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return a.reach(cmd.Context(), flags, args) },
	}
	flags.add(cmd)
	flags.addKinds(cmd)
	cmd.Flags().BoolVar(&flags.affecting, "affecting", false, "show the policies that affect the object")
	cmd.Flags().StringVar(&flags.section, "section", "", "limit --affecting to a listener, rule or port of the object")
	return cmd
}

func (a *app) reach(ctx context.Context, flags reachFlags, args []string) error {
	rule, err := parseRule(args)
	if err != nil {
		return err
	}
	if flags.section != "" && !flags.affecting {
		return errSection
	}
	q, err := a.query(ctx, flags.queryFlags, args)
	if err != nil {
		return err
	}
	find := q.reach
	if flags.affecting {
		find = q.affecting(flags.section)
	}
	items, err := find(ctx, a, rule)
	if err != nil {
		return err
	}
	return a.printer().Reaches(items)
}

var errSection = errors.New("invalid --section: requires --affecting")

// reach returns where the named policies have an effect, and prints why if one
// has none.
func (q *query) reach(ctx context.Context, a *app, rule *merge.Name) ([]api.Reach, error) {
	for _, o := range q.objects {
		if _, ok := o.(*policykind.Policy); !ok {
			return nil, fmt.Errorf("%s is not a policy; use --affecting to show the policies that affect it", o.Ref())
		}
	}
	policies := q.namedPolicies().sorted()
	if rule != nil && !slices.ContainsFunc(policies, func(p *policykind.Policy) bool { return hasRule(p, *rule) }) {
		return nil, fmt.Errorf("rule %s %w in %s", rule, errNotFound, policies[0].Ref())
	}
	found, err := q.summarize(ctx, rule, func(gateway.Path) bool { return true })
	if err != nil {
		return nil, err
	}
	outcomes, err := q.outcomes(ctx, policies)
	if err != nil {
		return nil, err
	}
	items := make([]api.Reach, 0, len(policies))
	for i, p := range policies { // outcomes have the same order
		r := found[&p.Policy]
		if r == nil {
			r = &reachSummary{}
		}
		if r.holding == 0 {
			a.infof("%s", noEffectMessage(outcomes[i], rule))
		}
		items = append(items, r.api(p.Ref(), rule))
	}
	return items, nil
}

// hasRule reports whether a policy has a rule that matches a name.
func hasRule(p *policykind.Policy, rule merge.Name) bool {
	return slices.ContainsFunc(p.Blocks, func(b merge.Rules) bool {
		return slices.ContainsFunc(b.Rules, func(r merge.Rule) bool { return rule.Matches(r.Key) })
	})
}

// noEffectMessage returns why a policy, or a rule of it, has no effect.
func noEffectMessage(o api.Outcome, rule *merge.Name) string {
	subject := o.Policy.String()
	if rule != nil {
		subject = fmt.Sprintf("rule %s of %s", rule, subject)
	}
	reasons := []string{fmt.Sprintf("the policy is %s", o.State)}
	if o.Message != "" {
		reasons[0] += ": " + o.Message
	}
	for _, l := range o.Lost {
		if key, err := merge.ParseKey(l.Rule); err == nil && (rule == nil || rule.Matches(key)) {
			reasons = append(reasons, fmt.Sprintf("%s lost to %s", l.Rule, l.To))
		}
	}
	return fmt.Sprintf("%s has no effect: %s", subject, strings.Join(reasons, ", "))
}

// affecting returns a function that finds the policies that affect the named
// objects, or a section of them.
func (q *query) affecting(section string) func(context.Context, *app, *merge.Name) ([]api.Reach, error) {
	return func(ctx context.Context, a *app, rule *merge.Name) ([]api.Reach, error) {
		for _, o := range q.objects {
			if _, ok := o.(*policykind.Policy); ok {
				return nil, fmt.Errorf("%s is a policy; omit --affecting to show where it has an effect", o.Ref())
			}
			if section != "" && !hasSection(o, section) {
				return nil, fmt.Errorf("section %s of %s %w", section, o.Ref(), errNotFound)
			}
		}
		paths := 0
		found, err := q.summarize(ctx, rule, func(p gateway.Path) bool {
			selected := slices.ContainsFunc(q.objects, func(o snapshot.Object) bool {
				return pathContains(p, o.Ref()) && (section == "" || pathContainsSection(q.view, p, o.Ref(), section))
			})
			if selected {
				paths++
			}
			return selected
		})
		if err != nil {
			return nil, err
		}
		items := q.affected(found, rule)
		switch {
		case len(items) > 0:
		case paths == 0:
			a.infof("no policy affects %s: no path with a policy leads through it%s", q.objects[0].Ref(), q.routesHint())
		default:
			a.infof("no policy affects %s: no rule of the policies on its paths is in effect", q.objects[0].Ref())
		}
		return items, nil
	}
}

// affected returns the policies that have an effect, sorted.
func (q *query) affected(found map[*merge.Policy]*reachSummary, rule *merge.Name) []api.Reach {
	items := []api.Reach{}
	for _, r := range found {
		if r.holding > 0 {
			items = append(items, r.api(r.policy, rule))
		}
	}
	slices.SortFunc(items, func(a, b api.Reach) int { return api.CompareRefs(a.Policy, b.Policy) })
	return items
}

// summarize walks the paths that on selects, and returns where each policy on
// them has an effect.
func (q *query) summarize(ctx context.Context, rule *merge.Name, on func(gateway.Path) bool) (map[*merge.Policy]*reachSummary, error) {
	found := make(map[*merge.Policy]*reachSummary)
	err := q.walk(ctx, func(e *effective.Effective) {
		if !q.includesKind(e.Kind.Ref()) || !on(e.Path) {
			return
		}
		for i := range e.Outcomes {
			o := &e.Outcomes[i]
			r := found[o.Policy]
			if r == nil {
				r = &reachSummary{policy: e.Ref(o.Policy)}
				found[o.Policy] = r
			}
			r.add(e, o, rule)
		}
	})
	return found, err
}

// routesHint names the routes that send traffic to a backend: the paths of most
// policy kinds end above the backend.
func (q *query) routesHint() string {
	var routes []string
	for r := range q.view.RoutesTo(q.objects[0].Ref()) {
		routes = append(routes, r.Ref().String())
	}
	if len(routes) == 0 {
		return ""
	}
	return "; for policy kinds whose paths end above backends, specify one of its routes: " + strings.Join(routes, ", ")
}
