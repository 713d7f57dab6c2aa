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

// reachFlags are those of reach.
type reachFlags struct {
	queryFlags
	affecting bool
	section   string
}

func (a *app) reachCommand() *cobra.Command {
	var flags reachFlags
	cmd := &cobra.Command{
		Use:   "reach KIND/NAME [RULE]",
		Short: "Show where a policy, or one rule of it, holds; or which policies affect an object.",
		Long: `Show where a policy holds: the gateways, listeners, services, routes and backends on
whose paths a rule of it survives. RULE narrows it to a rule by its key as it is
shown, to the rules under a prefix of keys, or to those of a name.

With --affecting, KIND/NAME is an object: a Gateway, a ListenerSet, a route, a Service
or other backend; --section names a listener, a rule or a port of it. Shown are the
policies of which a rule survives on a path through it, and where on these paths.
What the route itself says is no policy.

A policy that holds nowhere is an answer, too: the exit code is 0.`,
		Example: `  kubectl overrule reach -n infra authpolicy/gw-auth
  kubectl overrule reach -n infra authpolicy/gw-auth rules.authentication.sso
  kubectl overrule reach -n app --affecting httproute/toystore --section toys`,
		Args: withUsage(objectArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return a.reach(cmd.Context(), flags, args) },
	}
	flags.add(cmd)
	flags.addKinds(cmd)
	cmd.Flags().BoolVar(&flags.affecting, "affecting", false, "show the policies that affect the object")
	cmd.Flags().StringVar(&flags.section, "section", "", "a listener, rule or port of the object, with --affecting")
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

// reach returns where the policies that are named hold, and tells why one holds
// nowhere.
func (q *query) reach(ctx context.Context, a *app, rule *merge.Name) ([]api.Reach, error) {
	for _, o := range q.objects {
		if _, ok := o.(*policykind.Policy); !ok {
			return nil, fmt.Errorf("%s is not a policy; see which affect it with --affecting", o.Ref())
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

// sets reports whether a policy has a rule that is meant.
func hasRule(p *policykind.Policy, rule merge.Name) bool {
	return slices.ContainsFunc(p.Blocks, func(b merge.Rules) bool {
		return slices.ContainsFunc(b.Rules, func(r merge.Rule) bool { return rule.Matches(r.Key) })
	})
}

// nowhere says why a policy, or a rule of it, holds nowhere.
func noEffectMessage(o api.Outcome, rule *merge.Name) string {
	what := o.Policy.String()
	if rule != nil {
		what = fmt.Sprintf("rule %s of %s", rule, what)
	}
	why := []string{fmt.Sprintf("the policy is %s", o.State)}
	if o.Message != "" {
		why[0] += ": " + o.Message
	}
	for _, l := range o.Lost {
		if key, err := merge.ParseKey(l.Rule); err == nil && (rule == nil || rule.Matches(key)) {
			why = append(why, fmt.Sprintf("%s lost to %s", l.Rule, l.To))
		}
	}
	return fmt.Sprintf("%s holds nowhere: %s", what, strings.Join(why, ", "))
}

// affecting returns what finds the policies that affect the objects that are
// named, or a section of them.
func (q *query) affecting(section string) func(context.Context, *app, *merge.Name) ([]api.Reach, error) {
	return func(ctx context.Context, a *app, rule *merge.Name) ([]api.Reach, error) {
		for _, o := range q.objects {
			if _, ok := o.(*policykind.Policy); ok {
				return nil, fmt.Errorf("%s is a policy; see where it holds without --affecting", o.Ref())
			}
			if section != "" && !hasSection(o, section) {
				return nil, fmt.Errorf("section %s of %s %w", section, o.Ref(), errNotFound)
			}
		}
		paths := 0
		found, err := q.summarize(ctx, rule, func(p gateway.Path) bool {
			is := slices.ContainsFunc(q.objects, func(o snapshot.Object) bool {
				return pathContains(p, o.Ref()) && (section == "" || pathContainsSection(q.view, p, o.Ref(), section))
			})
			if is {
				paths++
			}
			return is
		})
		if err != nil {
			return nil, err
		}
		items := q.affected(found, rule)
		switch {
		case len(items) > 0:
		case paths == 0:
			a.infof("no policy affects %s: no path with a policy goes through it%s", q.objects[0].Ref(), q.routesHint())
		default:
			a.infof("no policy affects %s: no rule of those on its paths survives", q.objects[0].Ref())
		}
		return items, nil
	}
}

// affected returns the policies that hold somewhere, by name.
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

// reached walks the paths that are asked for, and adds up where each policy on
// them holds.
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

// elsewhere names the routes that send traffic to a backend that was asked
// about: most kinds of policies act above it.
func (q *query) routesHint() string {
	var routes []string
	for r := range q.view.RoutesTo(q.objects[0].Ref()) {
		routes = append(routes, r.Ref().String())
	}
	if len(routes) == 0 {
		return ""
	}
	return "; for kinds whose paths end above it, ask for what sends it traffic: " + strings.Join(routes, ", ")
}
