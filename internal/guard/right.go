package guard

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	api "overrule.dev/overrule/api/v1alpha1"
	"overrule.dev/overrule/merge"
)

// overridesLost turns the overrides that would not hold any more into findings:
// for those who may remove them something to be told, for all others a denial.
func (j *judge) overridesLost(may *rights) error {
	findings := make(map[lostOverride]*overrideTally)
	for _, t := range j.lost() {
		mine, err := may.override(t.ref(t.policy))
		if err != nil {
			return err
		}
		covered := false
		if !mine {
			if covered, err = may.standIn(t); err != nil {
				return err
			}
		}
		if covered {
			continue
		}
		t.mine, t.lostOverride.standIns = mine, ""
		if first := findings[t.lostOverride]; first != nil {
			first.paths = slices.Compact(slices.Sorted(slices.Values(slices.Concat(first.paths, t.paths))))
			continue
		}
		findings[t.lostOverride] = t
	}
	for _, t := range findings {
		j.overrideLost(t)
	}
	return j.weakenings(may)
}

// standIn reports whether an equal override that is as high stands in for one
// that is lost: one that the writer could not take away next.
func (r *rights) standIn(t *overrideTally) (bool, error) {
	for _, p := range t.standIns {
		lift, err := r.override(t.ref(p))
		if err != nil || !lift {
			return !lift && err == nil, err
		}
	}
	return false, nil
}

// youMay is the advice to those who may override the policy.
const youMay = "you may do that"

func (j *judge) overrideLost(t *overrideTally) {
	policy := t.ref(t.policy)
	f := Finding{Rule: t.rule, Policy: &policy}
	on := fmt.Sprintf("on %s", plural(len(t.paths), "path"))
	if len(t.paths) == 1 {
		on = "on " + last(t.was)
	}
	f.Short = fmt.Sprintf("%s of %s would not hold any more %s", t.rule, policy, on)
	switch {
	case t.loosened != "":
		f.What = fmt.Sprintf("the overrides of %s hold %s %s, and this write would protect them less: %s", policy, t.rule, on, t.loosened)
		f.Short = fmt.Sprintf("%s of %s would be less protected %s", t.rule, policy, on)
	case t.code == api.ReasonOverrideRemoved && t.unbound == "":
		f.What = fmt.Sprintf("the overrides of %s hold %s %s, and would not any more", policy, t.rule, on)
	default:
		f.What = fmt.Sprintf("%s would slip from under %s: the overrides of %s hold it %s, and %s", slipping(t), t.rule, policy, on, j.why(t))
	}
	action := api.Deny
	if t.mine {
		action = api.Warn
		f.Advice = youMay
	} else {
		f.Advice = fmt.Sprintf("ask the owner of %s, or see whether you may: %s", policy.Key(), j.check(policy))
	}
	j.reportOf(t.was.Kind, t.code, action, f)
}

// slipping names what an override holds no more.
func slipping(t *overrideTally) string {
	if len(t.paths) > 1 {
		return plural(len(t.paths), "path")
	}
	if t.was.Path.Route != nil {
		return t.was.Path.Route.Ref().String()
	}
	return last(t.was)
}

// why says what takes an override out of force.
func (j *judge) why(t *overrideTally) string {
	object := j.change.Object().Ref()
	switch {
	case t.unbound == unmatched && t.is.Path.Rule != t.was.Path.Rule:
		return fmt.Sprintf("%s %s, which may take its requests now", unmatched, last(t.is))
	case t.unbound == unmatched || t.unbound == apart || t.unbound == gone:
		return t.unbound + " " + last(t.is)
	case t.unbound != "":
		return t.unbound
	case t.version != "":
		return fmt.Sprintf("would not once it is written by version %s, which %s brings or changes", t.version, object)
	case j.change.Owner != "":
		return fmt.Sprintf("%s would be deleted with %s, which is made its owner", object, j.change.Owner)
	case j.change.After == nil:
		return fmt.Sprintf("would not without %s", object)
	case rootless(t.is.Path):
		return j.byUnread(t.is)
	case t.is.Path.Route == nil && t.is.Path.Set != nil && t.is.Path.Gateway.Ref() != t.was.Path.Gateway.Ref():
		return fmt.Sprintf("not on %s", t.is.Path.Gateway.Ref()) // the listener is the same
	case !sameDoor(t.is.Path, t.was.Path):
		return fmt.Sprintf("not on %s", through(t.is))
	case t.is.Path.Rule != t.was.Path.Rule || t.is.Path.ID().Backend != t.was.Path.ID().Backend:
		return fmt.Sprintf("not on %s", last(t.is))
	default:
		return "would not after this write"
	}
}

// check returns the command that shows whether one may remove overrides.
func (j *judge) check(policy api.Ref) string {
	if j.Rights == nil {
		return fmt.Sprintf("kubectl auth can-i override %s -n %s", strings.ToLower(policy.Kind), policy.Namespace)
	}
	return j.Rights.Check(policy)
}

func (t *overrideTally) ref(p *merge.Policy) api.Ref {
	return api.Ref{Group: t.kind.Group, Kind: t.kind.Kind, Namespace: p.Namespace, Name: p.Name}
}

// lost returns the losses by policy, rule and reason.
func (j *judge) lost() []*overrideTally {
	out := make([]*overrideTally, 0, len(j.lostOverrides))
	for _, t := range j.lostOverrides {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b *overrideTally) int {
		return cmp.Or(
			api.CompareRefs(a.ref(a.policy), b.ref(b.policy)),
			strings.Compare(a.rule, b.rule),
			strings.Compare(string(a.code), string(b.code)),
			strings.Compare(a.lostOverride.standIns, b.lostOverride.standIns),
			strings.Compare(a.unbound, b.unbound),
			strings.Compare(a.loosened, b.loosened),
		)
	})
	return out
}

// rights asks once for each policy.
type rights struct {
	*judge
	ctx   context.Context //nolint:containedctx // of one judgement
	known map[api.Ref]bool
}

func (r *rights) override(policy api.Ref) (bool, error) {
	if may, ok := r.known[policy]; ok {
		return may, nil
	}
	if err := r.findSystem(r.ctx); err != nil {
		return false, err
	}
	may := false
	if r.Rights != nil && r.system == "" {
		var err error
		if may, err = r.Rights.MayOverride(r.ctx, r.change.User, policy); err != nil {
			return false, fmt.Errorf("%w: %w", ErrRights, err)
		}
	}
	r.known[policy] = may
	return may, nil
}
